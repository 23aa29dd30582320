"""Runs of one person that end at the same moment, in processes of their own."""

from __future__ import annotations

from leaderboards.models import Run, Standing
from tests.conftest import make_person
from tests.leaderboards.at_once import run_at_once
from tests.runners.processes import migrated_file, shared_database  # noqa: F401  fixtures

PREPARE = """
import time

from django.db import transaction
from leaderboards.models import Leaderboard, PopcornUser, Run, Submission, SubmissionSource
from leaderboards.standings import settle_standing_of
from runners.models import Job

score, begins_s, lasts_s = map(float, sys.argv[1:])
board, alice = Leaderboard.objects.get(), PopcornUser.objects.get(username="alice")
with transaction.atomic():
    source = SubmissionSource.keep(b"x = 1")
submission = Submission.objects.create(
    leaderboard=board, revision=board.current_revision, user=alice, source=source,
    file_name="submission.py", mode="leaderboard", gpu="B200",
)
jobs = [
    Job.objects.create(kind="leaderboard", gpu="B200", runner="fake", owner_key="alice")
    for _ in range(2)
]
settle_standing_of(submission)
"""
FINISH = """
time.sleep(begins_s)
with transaction.atomic():
    Run.objects.bulk_create(
        Run(
            submission=submission, job=job, leaderboard=board, user=alice, gpu="B200",
            mode="leaderboard", secret=secret, passed=True, score=score,
        )
        for secret, job in enumerate(jobs)
    )
    settle_standing_of(submission)
    time.sleep(lasts_s)
"""


def test_the_better_of_two_runs_stands_though_the_worse_is_settled_before_it_is_committed(
    shared_database,  # noqa: F811
    make_leaderboard,
    tmp_path,
):
    make_leaderboard()
    make_person("alice")

    run_at_once(
        PREPARE,
        FINISH,
        database=shared_database,
        folder=tmp_path,
        arguments=[["1", "0", "1.5"], ["2", "0.5", "0"]],
    )

    assert Run.objects.filter(secret=False).count() == 2
    standing = Standing.objects.get()
    assert (standing.score, standing.run.score) == (1, 1)
