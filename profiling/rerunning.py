"""Which requests are measured again, and with which revision of their task."""

from __future__ import annotations

from datetime import datetime

from django.db.models import Exists, OuterRef, Q, QuerySet

from profiling.models import Capture, ProfileRequest
from runners.states import FINAL


def requests_to_rerun(
    *, ncu_version: str | None, gpu: str | None, verdict: str | None, since: datetime | None
) -> QuerySet[ProfileRequest]:
    """Ended requests, oldest first, that were not measured again already.

    `ncu_version` is what a report says, or its beginning up to a dot; `verdict` is the request's
    or a capture's; `since` is when it was asked for.
    """
    found = ProfileRequest.objects.filter(
        job__status__in=FINAL,
        deleted_at__isnull=True,
        submission__deleted_at__isnull=True,
        reruns__isnull=True,
    )
    captures = Capture.objects.filter(request=OuterRef("pk"))
    if ncu_version is not None:
        said = Q(ncu_version=ncu_version) | Q(ncu_version__startswith=f"{ncu_version}.")
        captures = captures.filter(said)
        found = found.filter(Exists(captures))
    if gpu is not None:
        found = found.filter(gpu__iexact=gpu)
    if verdict is not None:
        found = found.filter(Q(verdict=verdict) | Exists(captures.filter(verdict=verdict)))
    if since is not None:
        found = found.filter(created_at__gte=since)
    return found.order_by("created_at", "pk")
