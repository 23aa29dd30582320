"""People who claim the same codes at the same moment, in processes of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys

from django.db import connection

from leaderboards.invites import create_invites
from leaderboards.models import AuditEvent, Invite
from tests.conftest import make_person
from tests.environment import GPU_TYPES
from tests.runners.processes import (  # noqa: F401  fixtures
    ROOT,
    migrated_file,
    shared_database,
)

CLAIMER = """
import sys
import django

django.setup()

from leaderboards.exceptions import BadInvite
from leaderboards.invites import claim_invite
from leaderboards.models import PopcornUser

name, *codes = sys.argv[1:]
user = PopcornUser.objects.get(username=name)
print("ready", flush=True)
sys.stdin.readline()
for code in codes:
    try:
        claim_invite(code, user=user, actor=user)
        print(code, flush=True)
    except BadInvite:
        pass
"""
NAMES = ("alice", "bob", "carol", "dora")


def test_of_all_who_claim_a_code_at_once_one_gets_it(
    shared_database,  # noqa: F811
    make_leaderboard,
    tmp_path,
):
    codes = [invite.code for invite in create_invites([make_leaderboard()], 30, actor=None)]
    for name in NAMES:
        make_person(name)
    connection.close()
    environment = {
        "PATH": os.environ["PATH"],
        "DJANGO_SETTINGS_MODULE": "kernelbot_site.settings",
        "SECRET_KEY": "only for tests",
        "DATA_DIR": str(tmp_path),
        "DATABASE_URL": shared_database,
        "GPU_TYPES": json.dumps(GPU_TYPES),
    }
    claimers = [
        subprocess.Popen(
            [sys.executable, "-c", CLAIMER, name, *codes],
            cwd=ROOT,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for name in NAMES
    ]
    for claimer in claimers:
        assert claimer.stdout.readline() == "ready\n"
    for claimer in claimers:
        claimer.stdin.write("go\n")
        claimer.stdin.flush()
    claimed = {
        name: claimer.communicate(timeout=90)[0].split()
        for name, claimer in zip(NAMES, claimers, strict=True)
    }

    assert sorted(code for own in claimed.values() for code in own) == sorted(codes)
    kept = {
        name: list(
            Invite.objects.filter(claimed_by__username=name).order_by("pk").values_list("code")
        )
        for name in NAMES
    }
    assert kept == {name: [(code,) for code in own] for name, own in claimed.items()}
    assert AuditEvent.objects.filter(verb="invite.claimed").count() == len(codes)
