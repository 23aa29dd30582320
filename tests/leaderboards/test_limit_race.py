"""Requests at the same moment, from processes of their own, for the last places of an hour."""

from __future__ import annotations

import pytest

from leaderboards.models import RateLimit, Submission
from tests.conftest import make_person
from tests.leaderboards.at_once import run_at_once
from tests.runners.processes import migrated_file, shared_database  # noqa: F401  fixtures

PREPARE = """
from leaderboards.exceptions import HourlyLimitReached
from leaderboards.models import PopcornUser
from leaderboards.submitting import SubmissionOrder, submit
from runners.gpu.contract import Mode

alice = PopcornUser.objects.get(username="alice")
order = SubmissionOrder(
    leaderboard_name="rowsum",
    gpu_name="B200",
    mode=Mode.TEST,
    file_name="submission.py",
    content=b"x = 1\\n",
)
"""
SEND = """
for _ in range(5):
    try:
        submit(order, actor=alice)
        print("accepted")
    except HourlyLimitReached as error:
        print(error)
"""


@pytest.mark.parametrize("places", [1, 7])
def test_requests_at_once_never_take_more_places_than_there_are(
    shared_database,  # noqa: F811
    make_leaderboard,
    tmp_path,
    places,
):
    RateLimit.objects.create(
        leaderboard=make_leaderboard(), mode_category="test", max_submissions_per_hour=places
    )
    make_person("alice")

    printed = run_at_once(
        PREPARE, SEND, database=shared_database, folder=tmp_path, arguments=[[]] * 4
    )

    answers = [line for lines in printed for line in lines]
    assert len(answers) == 20
    assert answers.count("accepted") == places
    refused = [answer for answer in answers if answer != "accepted"]
    assert all(answer.startswith(f"{places} of at most {places}") for answer in refused)
    assert Submission.objects.count() == places
