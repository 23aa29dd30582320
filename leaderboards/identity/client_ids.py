"""The ids of CLIs: issued to nobody, activated by a person or an operator, revoked."""

from __future__ import annotations

import re
import uuid
from datetime import datetime, timedelta
from typing import Unpack

from django.conf import settings
from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from leaderboards import audit
from leaderboards.audit import By
from leaderboards.identity.exceptions import UnknownClientId
from leaderboards.models import ClientId, PopcornUser, digest_client_id
from leaderboards.verbs import Verb

# Each new id takes up to so many forgotten ones away, so that no clock of another's is needed.
CLEAN_UP_AT_ONCE = 100
_ISSUED = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)


def issue_cli_id(address: str | None) -> str:
    """A new id that is nobody's yet. Told this one time: only its digest is kept."""
    over = ClientId.objects.filter(activated_at__isnull=True, issued_at__lt=_too_old())
    ClientId.objects.filter(
        pk__in=list(over.values_list("pk", flat=True)[:CLEAN_UP_AT_ONCE])
    ).delete()
    issued = str(uuid.uuid4())
    ClientId.objects.create(
        kind=ClientId.Kind.CLI, digest=digest_client_id(issued), issued_to_address=address
    )
    return issued


def find_waiting(typed: str) -> ClientId:
    """The id that somebody typed, or pasted with the line of the CLI's file around it.

    Raises UnknownClientId unless it waits for somebody; the text does not tell why, so that
    nobody learns which ids exist.
    """
    match = _ISSUED.search(typed)
    found = match and _waiting().filter(digest=digest_client_id(match[0].lower())).first()
    if not found:
        raise _unknown()
    return found


@transaction.atomic
def activate_cli_id(
    waiting: ClientId,
    *,
    user: PopcornUser,
    revoke_others: bool = False,
    **by: Unpack[By],
) -> None:
    """Make it `user`'s, once. Raises UnknownClientId when it no longer waits for somebody."""
    now = timezone.now()
    if _waiting().filter(pk=waiting.pk).update(user=user, activated_at=now) != 1:
        raise _unknown()
    audit.record(
        Verb.CLIENT_ID_ACTIVATED,
        user,
        **by,
        client_id=waiting.pk,
        digest=waiting.digest[:8],
        issued_to_address=waiting.issued_to_address,
    )
    if revoke_others:
        for other in valid_ids(user).filter(kind=ClientId.Kind.CLI).exclude(pk=waiting.pk):
            revoke_client_id(other, **by)


@transaction.atomic
def revoke_client_id(client_id: ClientId, **by: Unpack[By]) -> None:
    """End an id at once and for good; harmless when it was revoked before."""
    live = ClientId.objects.valid().filter(pk=client_id.pk)
    if client_id.user is None or live.update(revoked_at=timezone.now()) != 1:
        return
    audit.record(
        Verb.CLIENT_ID_REVOKED,
        client_id.user,
        **by,
        client_id=client_id.pk,
        digest=client_id.digest[:8],
    )


def valid_ids(user: PopcornUser) -> QuerySet[ClientId]:
    """What `user` can be known by now, newest first."""
    return ClientId.objects.valid().filter(user=user).select_related("user").order_by("-issued_at")


def _waiting() -> QuerySet[ClientId]:
    return ClientId.objects.filter(
        kind=ClientId.Kind.CLI,
        user__isnull=True,
        revoked_at__isnull=True,
        issued_at__gte=_too_old(),
    )


def _too_old() -> datetime:
    return timezone.now() - timedelta(seconds=settings.ACTIVATION_LIMIT_S)


def _unknown() -> UnknownClientId:
    return UnknownClientId(
        "no such id waits to be activated: it was mistyped, is too old, or was activated before; "
        "run popcorn register again for a new one"
    )
