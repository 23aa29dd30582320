"""The audit trail of requests: downloads are added to it, and it is read and exported."""

from __future__ import annotations

from datetime import datetime

from django.apps import apps
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.utils import timezone

from leaderboards import audit
from leaderboards.audit import RequestContext
from leaderboards.models import AuditEvent, PopcornUser
from profiling.models import Capture, ProfileRequest
from profiling.verbs import Verb

# Whoever has the signed link is nobody by name.
LINK_LABEL = "holder of the link"


def events_of(request: ProfileRequest) -> QuerySet[AuditEvent]:
    """Oldest first."""
    return AuditEvent.objects.filter(
        subject_kind=request._meta.model_name, subject_id=str(request.pk)
    ).order_by("pk")


def find_events(
    *, since: datetime | None, until: datetime | None, subject: str | None
) -> QuerySet[AuditEvent]:
    """Those of `since` and later, before `until`, about what has this id; oldest first."""
    found = AuditEvent.objects.order_by("pk")
    if since is not None:
        found = found.filter(created_at__gte=since)
    if until is not None:
        found = found.filter(created_at__lt=until)
    if subject is not None:
        # The kinds too, since the index begins with them.
        kinds = [str(model._meta.model_name) for model in apps.get_models()]
        found = found.filter(subject_kind__in=kinds, subject_id=subject)
    return found


def record_download(
    request: ProfileRequest,
    capture: Capture,
    file: str,
    *,
    actor: PopcornUser | None,
    context: RequestContext,
) -> None:
    """One row per actor, file and hour, however often it is fetched; None is a link's holder.

    So the trail of a request cannot be filled by a client that downloads in a loop.
    """
    hour = timezone.now().replace(minute=0, second=0, microsecond=0)
    label = actor.actor_label if actor else LINK_LABEL
    already = events_of(request).filter(
        verb=Verb.DOWNLOADED,
        created_at__gte=hour,
        actor=actor,
        data__capture=capture.key,
        data__file=file,
    )
    if already.exists():
        return
    with transaction.atomic():
        # Locked, so that of many who fetch it at once only the first writes.
        ProfileRequest.objects.select_for_update(no_key=True).only("pk").get(pk=request.pk)
        if not already.exists():
            audit.record(
                Verb.DOWNLOADED,
                request,
                actor=actor,
                actor_label=label,
                context=context,
                capture=capture.key,
                file=file,
            )


def recorded(
    sent: HttpResponseBase,
    request: ProfileRequest,
    capture: Capture,
    file: str,
    *,
    actor: PopcornUser | None,
    context: RequestContext,
) -> HttpResponseBase:
    """The same answer, recorded if it gives out the file; it is closed when that cannot be."""
    if sent.streaming or isinstance(sent, HttpResponseRedirect):
        try:
            record_download(request, capture, file, actor=actor, context=context)
        except BaseException:
            sent.close()
            raise
    return sent
