"""What the reads of a competition cost as it grows (docs/performance.md).

    DATABASE_URL=postgres://… python -m benchmarks.leaderboard_reads [--sizes 10000 1000000]

Needs an empty PostgreSQL database, and leaves it full. 1,000 people have one ranked submission
each on one leaderboard (who asks has 50 more), then a hundred each; every address is asked at both
sizes, through all of Django but the network. Prints JSON: milliseconds of the fastest answer of
many, queries, bytes, and how the time grew.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import time
from collections.abc import Iterator
from datetime import datetime, timedelta

import django

from tests import environment  # noqa: F401  what settings.py reads, before it is read

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "kernelbot_site.settings")
django.setup()

from django.core.management import call_command  # noqa: E402
from django.db import connection, transaction  # noqa: E402
from django.test import Client  # noqa: E402
from django.test.utils import CaptureQueriesContext  # noqa: E402
from django.utils import timezone  # noqa: E402

from leaderboards.models import (  # noqa: E402
    Leaderboard,
    Run,
    Submission,
    SubmissionJob,
    SubmissionSource,
)
from leaderboards.standings import settle_all_standings  # noqa: E402
from runners.models import Job  # noqa: E402
from tests.conftest import make_person  # noqa: E402
from tests.server.seed import make_board  # noqa: E402

PEOPLE = 1_000
SIZES = 1_000, 100_000
TIMES = 60
PAGE = 50
BATCH = 5_000


def main() -> None:
    if connection.vendor != "postgresql":
        raise SystemExit("DATABASE_URL must name a PostgreSQL database")
    parser = argparse.ArgumentParser(prog="python -m benchmarks.leaderboard_reads")
    parser.add_argument("--sizes", type=int, nargs=2, default=SIZES, help="submissions in all")
    sizes = parser.parse_args().sizes
    call_command("migrate", verbosity=0)
    competition = Competition()
    measured = {}
    for total in sizes:
        competition.grow_to(total)
        with connection.cursor() as cursor:
            cursor.execute("VACUUM ANALYZE")
        measured[total] = {path: measure(path) for path in competition.paths()}
    print(json.dumps(compare(measured), indent=2))


class Competition:
    """One leaderboard with a task, two passes of three stages per submission, ten boards beside."""

    def __init__(self) -> None:
        for index in range(11):
            make_board(f"board{index}", gpu_types=["B200"])
        self.people = [make_person(f"person{index}") for index in range(PEOPLE)]
        with transaction.atomic():
            self.source = SubmissionSource.keep(b"def custom_kernel(data):\n    pass\n" * 100)
        self.asking = self.people[7]
        self.random = random.Random(1)
        self.total = 0
        self.began = timezone.now() - timedelta(days=1000)
        self._add(range(-PAGE, 0))

    def paths(self) -> list[str]:

        mine = Submission.objects.filter(user=self.asking).latest("id").pk
        return [
            "/leaderboards",
            f"/user/submissions?leaderboard=board0&limit={PAGE}",
            f"/user/submissions/{mine}",
            "/submissions/board0/B200",
            f"/submissions/board0/B200?limit={PAGE}",
            "/submission_count/board0/B200",
        ]

    def grow_to(self, total: int) -> None:
        while self.total < total:
            count = min(BATCH, total - self.total)
            self._add(range(self.total, self.total + count))
            self.total += count
        settle_all_standings()

    def _add(self, numbers: range) -> None:

        board, now = Leaderboard.objects.get(name="board0"), timezone.now()
        with transaction.atomic():
            submissions = Submission.objects.bulk_create(
                Submission(
                    user=self.asking if number < 0 else self.people[number % PEOPLE],
                    leaderboard=board,
                    revision=board.current_revision,
                    source=self.source,
                    file_name="submission.py",
                    mode="leaderboard",
                    gpu="B200",
                    created_at=self.began + timedelta(minutes=number),
                    # One of fifty was caught, and one of fifty withdrawn.
                    verdict="hacked" if number >= PEOPLE and self._happens(0.02) else "",
                    deleted_at=now if number >= PEOPLE and self._happens(0.02) else None,
                )
                for number in numbers
            )
            passes = [
                SubmissionJob(submission=submission, job=a_job(now), secret=secret)
                for submission in submissions
                for secret in (False, True)
            ]
            Job.objects.bulk_create(of.job for of in passes)
            SubmissionJob.objects.bulk_create(passes)
            Run.objects.bulk_create(run for of in passes for run in self._runs(of))

    def _happens(self, share: float) -> bool:
        return self.random.random() < share

    def _runs(self, of: SubmissionJob) -> Iterator[Run]:

        # One secret pass of ten fails, but of nobody's first submission.
        fails = of.secret and of.submission_id > PEOPLE + PAGE and self._happens(0.1)
        said = {"stdout": "", "stderr": "", "success": True, "exit_code": 0, "duration": 1.0}
        for mode in ("test", "benchmark", "leaderboard"):
            passed = not (fails and mode == "leaderboard")
            ranks = mode == "leaderboard" and passed
            yield Run(
                submission=of.submission,
                job=of.job,
                leaderboard=of.submission.leaderboard,
                user=of.submission.user,
                gpu="B200",
                mode=mode,
                secret=of.secret,
                passed=passed,
                score=self.random.lognormvariate(-9, 1) if ranks else None,
                run=said | {"result": {f"benchmark.{n}.mean": "18250.5" for n in range(10)}},
            )


def a_job(now: datetime) -> Job:

    return Job(
        kind="leaderboard",
        gpu="B200",
        runner="fake",
        owner_key="somebody",
        status="succeeded",
        finished_at=now,
    )


def measure(path: str) -> dict[str, float]:
    """Milliseconds of the fastest answer (others share the machine), queries and bytes."""

    client = Client(headers={"X-Popcorn-Cli-Id": "person7-cli-id"})
    took = []
    for _ in range(TIMES):
        started = time.perf_counter()
        answer = client.get(path)
        took.append((time.perf_counter() - started) * 1000)
        assert answer.status_code == 200, answer.content
    with CaptureQueriesContext(connection) as queries:
        client.get(path)
    return {
        "ms": round(min(took), 2),
        "queries": len(queries),
        "bytes": len(answer.content),
    }


def compare(measured: dict[int, dict[str, dict[str, float]]]) -> dict[str, object]:
    small, large = measured
    before, after = list(measured[small].values()), list(measured[large].values())
    return {
        path: {
            str(small): first,
            str(large): last,
            "growth": round(last["ms"] / first["ms"], 2),
        }
        for path, first, last in zip(measured[large], before, after, strict=True)
    }


if __name__ == "__main__":
    main()
