"""People who claim the same codes at the same moment, in processes of their own."""

from __future__ import annotations

from leaderboards.invites import create_invites
from leaderboards.models import AuditEvent, Invite
from tests.conftest import make_person
from tests.leaderboards.at_once import run_at_once
from tests.runners.processes import migrated_file, shared_database  # noqa: F401  fixtures

PREPARE = """
from leaderboards.exceptions import BadInvite
from leaderboards.invites import claim_invite
from leaderboards.models import PopcornUser

name, *codes = sys.argv[1:]
user = PopcornUser.objects.get(username=name)
"""
CLAIM = """
for code in codes:
    try:
        claim_invite(code, user=user, actor=user)
        print(code)
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

    printed = run_at_once(
        PREPARE,
        CLAIM,
        database=shared_database,
        folder=tmp_path,
        arguments=[[name, *codes] for name in NAMES],
    )

    claimed = dict(zip(NAMES, printed, strict=True))
    assert sorted(code for own in claimed.values() for code in own) == sorted(codes)
    kept = {
        name: list(
            Invite.objects.filter(claimed_by__username=name)
            .order_by("pk")
            .values_list("code", flat=True)
        )
        for name in NAMES
    }
    assert kept == claimed
    assert AuditEvent.objects.filter(verb="invite.claimed").count() == len(codes)
