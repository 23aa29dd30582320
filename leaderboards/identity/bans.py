"""Who may not submit. Holds from the next request on; what runs already is left to end."""

from __future__ import annotations

from typing import Unpack

from django.db import transaction
from django.utils import timezone

from leaderboards import audit
from leaderboards.audit import By
from leaderboards.identity.exceptions import UnknownUser
from leaderboards.models import PopcornUser
from leaderboards.verbs import Verb


def user_called(user_id: str) -> PopcornUser:
    """By public id. Raises UnknownUser."""
    user = PopcornUser.objects.filter(user_id=user_id).first()
    if user is None:
        raise UnknownUser(f"there is no user with the id {user_id[:64]}")
    return user


@transaction.atomic
def ban_user(user: PopcornUser, *, reason: str, **by: Unpack[By]) -> None:
    """Ban, or give the ban of who is banned already another reason (500 characters at most)."""
    user.banned_at = user.banned_at or timezone.now()
    user.ban_reason = reason[:500]
    user.save(update_fields=["banned_at", "ban_reason"])
    audit.record(
        Verb.USER_BANNED,
        user,
        **by,
        user_id=user.user_id,
        reason=user.ban_reason,
    )


@transaction.atomic
def unban_user(user: PopcornUser, *, reason: str, **by: Unpack[By]) -> None:
    user.banned_at = None
    user.ban_reason = ""
    user.save(update_fields=["banned_at", "ban_reason"])
    audit.record(
        Verb.USER_UNBANNED,
        user,
        **by,
        user_id=user.user_id,
        reason=reason,
    )
