"""Write the rows of a release, made by its own code: python PATH/OF/THIS/write.py OUT, run in its checkout.

What is written: people, leaderboards, a profile that ended, one that runs and one that waits, and,
where the release has them, a ranked submission. Archives come along, as base64 by their names.
"""

from __future__ import annotations

import base64
import importlib
import json
import os
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, os.getcwd())
importlib.import_module("tests.environment")  # the settings that every test has

FOLDER = Path(tempfile.mkdtemp(prefix="kernelbot-release-"))
os.environ |= {
    "DATA_DIR": str(FOLDER),
    "FAKE_RUNNER_DIR": str(FOLDER / "fake"),
    "DATABASE_URL": f"sqlite:///{FOLDER}/db.sqlite3",
    "DJANGO_SETTINGS_MODULE": "kernelbot_site.settings",
    "POLL_EVERY_S": "0.01",
    "DEBUG": "1",
}

import django  # noqa: E402

django.setup()

from asgiref.sync import async_to_sync  # noqa: E402
from django.core.files.uploadedfile import SimpleUploadedFile  # noqa: E402
from django.core.management import call_command  # noqa: E402
from django.test import Client  # noqa: E402

from leaderboards.models import PopcornUser  # noqa: E402
from leaderboards.submitting import SubmissionOrder, submit  # noqa: E402
from runners.backends.fake import FakeRunner  # noqa: E402
from runners.backends.fake_plan import Plan  # noqa: E402
from runners.dispatcher.loop import Dispatcher  # noqa: E402
from runners.gpu import envelope  # noqa: E402
from runners.gpu.contract import JobOutcome, Mode, System  # noqa: E402
from runners.models import Job  # noqa: E402
from tests.leaderboards.conftest import good_stages  # noqa: E402
from tests.server import seed  # noqa: E402
from tests.synthetic_reports import write_demo_archive  # noqa: E402

NOT_KEPT = ["contenttypes", "auth.permission", "sessions", "admin"]


def main(out: Path) -> None:
    call_command("migrate", verbosity=0)
    seed.seed()
    archive = write_demo_archive(FOLDER / "capture.zip")
    fake = FakeRunner()
    fake.plan(Plan(archive=str(archive)))
    dispatcher = Dispatcher("release")
    send("/profile/rowsum/B200?benchmark_index=0")
    step(dispatcher, 12)
    rank(fake, dispatcher)
    fake.plan(Plan(archive=str(archive), run_s=3600))
    send("/profile/rowsum/H100?benchmark_index=0")
    step(dispatcher, 3)
    send("/profile/rowsum/H100?benchmark_index=1")
    print(list(Job.objects.values_list("kind", "gpu", "status", "failure_message")))
    call_command("dumpdata", exclude=NOT_KEPT, output=str(out / "rows.json"), indent=1)
    files = {
        str(path.relative_to(FOLDER / "reports")): base64.b64encode(path.read_bytes()).decode()
        for path in (FOLDER / "reports").rglob("*")
        if path.is_file()
    }
    (out / "files.json").write_text(json.dumps(files, indent=1) + "\n")


def rank(fake: FakeRunner, dispatcher: Dispatcher) -> None:
    """A submission whose public and secret pass are good."""
    order = SubmissionOrder(
        mode=Mode.LEADERBOARD,
        leaderboard_name="rowsum",
        gpu_name="B200",
        file_name="submission.py",
        content=b"def custom_kernel(data):\n    return data + 0\n",
    )
    submit(order, actor=PopcornUser.objects.get(username="alice"))
    while waiting := Job.objects.filter(kind="leaderboard", status="queued").first():
        outcome = JobOutcome(
            job_id=str(waiting.pk),
            attempt=waiting.attempt,
            system=System(gpu="NVIDIA B200", device_count=1, runtime="CUDA", hostname="gpu-7"),
            runs=good_stages(),
        )
        made = FOLDER / f"{waiting.pk}.envelope"
        envelope.write(made, outcome, {})
        fake.plan(Plan(envelope=str(made)), job_id=waiting.pk)
        # No further, or the secret pass begins before its answer is planned.
        while Job.objects.filter(pk=waiting.pk, finished_at=None).exists():
            step(dispatcher, 1)


def send(path: str) -> int:
    file = SimpleUploadedFile("submission.py", b"def custom_kernel(data):\n    return data\n")
    answer = Client(HTTP_HOST="testserver").post(
        path,
        {"file": file},
        headers={"X-Popcorn-Cli-Id": "alice-cli-id", "Prefer": "respond-async"},
    )
    return answer.status_code


def step(dispatcher: Dispatcher, times: int) -> None:
    for _ in range(times):
        async_to_sync(dispatcher.step)()


if __name__ == "__main__":
    target = Path(sys.argv[1]).resolve()
    target.mkdir(parents=True, exist_ok=True)
    main(target)
