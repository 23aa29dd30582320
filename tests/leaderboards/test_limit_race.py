"""Requests at the same moment, from processes of their own, for the last places of an hour."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
from django.db import connection

from leaderboards.models import RateLimit, Submission
from tests.conftest import make_person
from tests.environment import GPU_TYPES
from tests.runners.processes import (  # noqa: F401  fixtures
    ROOT,
    migrated_file,
    shared_database,
)

SENDER = """
import sys
import django

django.setup()

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
print("ready", flush=True)
sys.stdin.readline()
for _ in range(5):
    try:
        submit(order, actor=alice)
        print("accepted", flush=True)
    except HourlyLimitReached as error:
        print(error, flush=True)
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
    connection.close()
    environment = {
        "PATH": os.environ["PATH"],
        "DJANGO_SETTINGS_MODULE": "kernelbot_site.settings",
        "SECRET_KEY": "only for tests",
        "DATA_DIR": str(tmp_path),
        "DATABASE_URL": shared_database,
        "GPU_TYPES": json.dumps(GPU_TYPES),
    }
    senders = [
        subprocess.Popen(
            [sys.executable, "-c", SENDER],
            cwd=ROOT,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(4)
    ]
    for sender in senders:
        assert sender.stdout.readline() == "ready\n"
    for sender in senders:
        sender.stdin.write("go\n")
        sender.stdin.flush()
    answers = [
        line for sender in senders for line in sender.communicate(timeout=90)[0].splitlines()
    ]

    assert len(answers) == 20
    assert answers.count("accepted") == places
    refused = [answer for answer in answers if answer != "accepted"]
    assert all(answer.startswith(f"{places} of at most {places}") for answer in refused)
    assert Submission.objects.count() == places
