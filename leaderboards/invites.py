"""Invite codes: made and revoked by operators, claimed by one person each (wire-contract.md, 8)."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import Unpack

from django.db import transaction
from django.utils import timezone

from leaderboards import audit
from leaderboards.audit import By
from leaderboards.exceptions import BadInvite, UnknownInvite
from leaderboards.models import Invite, Leaderboard, PopcornUser
from leaderboards.verbs import Verb
from runners.exceptions import ServiceError

CODES_AT_ONCE = 10_000
CODE_CHARS = 64
# One answer for all three, so that nobody learns which codes there are.
_NOT_YOURS = "this invite code is not known, was revoked, or is somebody else's"


@transaction.atomic
def create_invites(
    leaderboards: Sequence[Leaderboard], count: int, **by: Unpack[By]
) -> list[Invite]:
    """Codes for one person each, each opening all of `leaderboards`; 1 to CODES_AT_ONCE of them."""
    # Hexadecimal, since `popcorn join` would take a code that begins with - for an option.
    invites = Invite.objects.bulk_create(
        [Invite(code=secrets.token_hex(16)) for _ in range(count)], batch_size=1000
    )
    opens = Invite.leaderboards.through
    opens.objects.bulk_create(
        [opens(invite=invite, leaderboard=board) for invite in invites for board in leaderboards],
        batch_size=1000,
    )
    for board in leaderboards:
        audit.record(Verb.INVITES_CREATED, board, **by, name=board.name, count=count)
    return invites


@transaction.atomic
def claim_invite(code: str, *, user: PopcornUser, **by: Unpack[By]) -> list[str]:
    """Make the code this person's, and name the leaderboards that it opens. Raises BadInvite.

    Again by the same person changes nothing. The claim is one conditional UPDATE, so that of two
    people at once one gets the code and the other is told so.
    """
    _require_form(code, BadInvite(_NOT_YOURS))
    standing = Invite.objects.standing().filter(code=code)
    claimed_now = standing.filter(claimed_by=None).update(
        claimed_by=user, claimed_at=timezone.now()
    )
    invite = standing.filter(claimed_by=user).first()
    if invite is None:
        raise BadInvite(_NOT_YOURS)
    names = list(invite.leaderboards.existing().order_by("name").values_list("name", flat=True))
    if claimed_now:
        audit.record(Verb.INVITE_CLAIMED, invite, **by, leaderboards=names)
    return names


@transaction.atomic
def revoke_invite(code: str, **by: Unpack[By]) -> Invite:
    """The code opens nothing any more, not even for who claimed it. Raises UnknownInvite."""
    unknown = UnknownInvite("there is no such invite code, or it was revoked before")
    _require_form(code, unknown)
    if not Invite.objects.standing().filter(code=code).update(revoked_at=timezone.now()):
        raise unknown
    invite = Invite.objects.get(code=code)
    audit.record(Verb.INVITE_REVOKED, invite, **by, was_claimed=invite.claimed_by_id is not None)
    return invite


def _require_form(code: str, error: ServiceError) -> None:
    """Raises `error` for what the database could not even be asked for: NUL, half surrogates."""
    if not (code.isascii() and code.isprintable() and len(code) <= CODE_CHARS):
        raise error
