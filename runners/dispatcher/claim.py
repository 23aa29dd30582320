"""Take queued jobs, within the limits in flight, in a fair order."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator
from datetime import datetime, timedelta

from django.conf import settings
from django.db import connection, transaction
from django.db.models import F, OuterRef, Subquery
from django.utils import timezone

from runners.models import Job
from runners.pauses import paused_gpus
from runners.registry import GpuType
from runners.states import JobStatus
from runners.transitions import move

logger = logging.getLogger(__name__)

# Any number, as long as nothing else in this database locks it.
CLAIM_LOCK = 0x6B65726E


def claim_jobs(owner: str) -> list[Job]:
    """Move due jobs to STARTING under our lease; one short transaction.

    The limits count rows, so only one dispatcher may claim at a time: on SQLite the IMMEDIATE
    transaction sees to it, on PostgreSQL an advisory lock. SKIP LOCKED passes by jobs that
    somebody cancels at this moment; a job that was chosen is locked, and nobody else moves it.
    """
    if not Job.objects.due(timezone.now()).exists():
        return []
    with transaction.atomic():
        if connection.vendor == "postgresql":
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_advisory_xact_lock(%s)", [CLAIM_LOCK])
        in_flight = Job.objects.in_flight()
        of_gpu = Counter(in_flight.values_list("gpu", flat=True))
        of_owner = Counter(in_flight.values_list("owner_key", flat=True))
        paused = paused_gpus()
        claimed: list[Job] = []
        for gpu in settings.GPU_TYPES.values():
            if gpu.name not in paused:
                room = gpu.max_in_flight - of_gpu[gpu.name]
                claimed += _claim_for(gpu, room, of_owner, owner)
    return claimed


def _claim_for(gpu: GpuType, room: int, of_owner: Counter[str], owner: str) -> Iterator[Job]:
    while room > 0:
        now = timezone.now()
        busy = [key for key, count in of_owner.items() if count >= settings.IN_FLIGHT_PER_USER]
        job = _next_in_turn(gpu.name, busy, now)
        if job is None:
            return
        if _take(job, owner, now):
            of_owner[job.owner_key] += 1
            room -= 1
            yield job


def _next_in_turn(gpu: str, busy: list[str], now: datetime) -> Job | None:
    """The oldest job of whoever was served longest ago, so a hundred jobs of one block nobody."""
    last_start = (
        Job.objects.filter(gpu=gpu, owner_key=OuterRef("owner_key"), starting_at__isnull=False)
        .order_by("-starting_at")
        .values("starting_at")
    )
    return (
        Job.objects.due(now)
        .filter(gpu=gpu)
        .exclude(owner_key__in=busy)
        .order_by(F("last_start").asc(nulls_first=True), "queued_at", "pk")
        .annotate(last_start=Subquery(last_start[:1]))
        .select_for_update(skip_locked=True, of=("self",))
        .first()
    )


def _take(job: Job, owner: str, now: datetime) -> bool:
    try:
        move(
            job,
            JobStatus.STARTING,
            actor_label=f"dispatcher {owner}",
            lease_owner=owner,
            lease_until=now + timedelta(seconds=settings.LEASE_S),
        )
    except Exception:
        # Else the loop spins on this row, and nobody behind it is served.
        logger.exception("%s cannot be claimed", job)
        not_before = now + timedelta(seconds=settings.POISON_DELAY_S)
        Job.objects.filter(pk=job.pk).update(not_before=not_before)
        return False
    return True
