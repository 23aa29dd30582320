"""What the page of a request costs, from stored facts (docs/performance.md).

    python -m benchmarks.review_page

Two captures each of a full-set report with one launch, of a large PyTorch report, and of one with
105 launches; asked for through all of Django but the network, by an operator and by the holder of
a link. Needs the real reports beside the checkout, keeps nothing. Prints JSON: milliseconds of the
fastest and of the middle one of many answers, and bytes. The number of queries is
held by tests/profiling/test_review_page.py.
"""

from __future__ import annotations

import json
import os
import statistics
import tempfile
import time
from pathlib import Path

import django

from tests import environment  # noqa: F401  what settings.py reads, before it is read

os.environ["DATABASE_URL"] = "sqlite://:memory:"
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "kernelbot_site.settings")
django.setup()

from django.core.management import call_command  # noqa: E402
from django.test import Client  # noqa: E402
from django.urls import reverse  # noqa: E402

from profiling.links import new_link  # noqa: E402
from tests.conftest import make_person  # noqa: E402
from tests.profiling.evidence import archive_of, finished_profile  # noqa: E402
from tests.reports.samples import sample  # noqa: E402
from tests.server.seed import make_board  # noqa: E402

REPORTS = (
    "t4-ncu2024.2-full",
    "h800-ncu2023.3-pytorch-nvtx-nan",
    "a10-ncu2023.2-105-kernels",
)
TIMES = 40


def main() -> None:
    call_command("migrate", verbosity=0)
    make_board("rowsum")
    alice = make_person("alice")
    operator = Client()
    operator.force_login(make_person("olga", is_staff=True, is_superuser=True))
    measured = {}
    for report in REPORTS:
        with tempfile.TemporaryDirectory() as folder:
            archives = {
                index: archive_of(sample(f"{report}.ncu-rep"), Path(folder) / f"{index}.zip")
                for index in (0, 1)
            }
            made = finished_profile(alice, Path(folder), archives)
        pages = {
            "operator": reverse("admin:profiling_profilerequest_review", args=[made.pk]),
            "link": reverse("profile-page", args=[new_link(made).token]),
        }
        measured[report] = {who: _measure(operator, page) for who, page in pages.items()}
    print(json.dumps(measured, indent=2))


def _measure(client: Client, page: str) -> dict[str, float]:
    answer = client.get(page)
    assert answer.status_code == 200
    times = []
    for _ in range(TIMES):
        began = time.perf_counter()
        client.get(page)
        times.append((time.perf_counter() - began) * 1000)
    return {
        "fastest_ms": round(min(times), 1),
        "median_ms": round(statistics.median(times), 1),
        "bytes": len(answer.content),
    }


if __name__ == "__main__":
    main()
