"""Take over what nobody holds, end what nobody wants, renew what is ours."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable
from datetime import datetime, timedelta
from uuid import UUID

from django.conf import settings
from django.db.models import Q
from django.utils import timezone

from runners.exceptions import LostRace
from runners.models import DispatcherHeartbeat, Job
from runners.states import IN_FLIGHT, JobStatus
from runners.transitions import move

logger = logging.getLogger(__name__)

# Rows of dispatchers that ended without a word.
HEARTBEAT_KEPT = timedelta(days=1)


class FarLeases:
    """Leases that end later than any that is given now: some clock was ahead, and was set back.

    No clock tells when these are over. Whoever lives renews them, so that they are watched: one
    that stands unchanged for as long as a lease lasts is nobody's.
    """

    def __init__(self) -> None:
        self._seen: dict[tuple[UUID, str, datetime | None], float] = {}

    def abandoned(self) -> list[Job]:
        longest = timezone.now() + timedelta(seconds=settings.LEASE_S)
        far = {
            (job.pk, job.lease_owner, job.lease_until): job
            for job in Job.objects.in_flight().filter(lease_until__gt=longest)
        }
        now = time.monotonic()
        self._seen = {key: self._seen.get(key, now) for key in far}
        return [job for key, job in far.items() if now - self._seen[key] > settings.LEASE_S]


def take_over(owner: str, far: FarLeases | None = None) -> list[Job]:
    """Jobs whose lease ran out, now under ours: of several takers of one job, one succeeds."""
    now = timezone.now()
    taken = []
    abandoned: Iterable[Job] = Job.objects.abandoned(now)
    for job in [*abandoned, *(far.abandoned() if far else ())]:
        until = now + timedelta(seconds=settings.LEASE_S)
        unchanged = Job.objects.in_flight().filter(
            pk=job.pk,
            attempt=job.attempt,
            lease_owner=job.lease_owner,
            lease_until=job.lease_until,
        )
        if unchanged.update(lease_owner=owner, lease_until=until):
            logger.warning("%s (%s) taken over from %s", job, job.status, job.lease_owner)
            job.refresh_from_db()
            taken.append(job)
    return taken


def renew_leases(owner: str, jobs: list[UUID], until: datetime) -> None:
    """Only of jobs that are carried: one that was dropped by mistake comes free again."""
    Job.objects.in_flight().filter(lease_owner=owner, pk__in=jobs).update(lease_until=until)


def release_leases(owner: str) -> None:
    """Whoever comes next takes over at once."""
    Job.objects.in_flight().filter(lease_owner=owner).update(lease_until=timezone.now())


def held_jobs(owner: str) -> set[tuple[UUID, int]]:
    """Key and attempt of the jobs that are ours."""
    return set(Job.objects.in_flight().filter(lease_owner=owner).values_list("pk", "attempt"))


def time_out_queue(owner: str) -> None:
    """End jobs that waited too long for a GPU."""
    oldest = timezone.now() - timedelta(seconds=settings.QUEUE_LIMIT_S)
    for job in Job.objects.due(timezone.now()).filter(queued_at__lt=oldest):
        message = (
            f"No {job.gpu} was free within {settings.QUEUE_LIMIT_S:g} s, and the service gave up "
            "waiting. Send it again later."
        )
        try:
            move(
                job,
                JobStatus.TIMED_OUT,
                actor_label=f"dispatcher {owner}",
                reason=message,
                failure_kind="queue_limit",
                failure_message=message,
            )
        except LostRace:
            continue  # it was started or cancelled at this moment
        except Exception:
            logger.exception("%s cannot be timed out", job)
            not_before = timezone.now() + timedelta(seconds=settings.POISON_DELAY_S)
            Job.objects.filter(pk=job.pk).update(not_before=not_before)


def fail_without_runner(job: Job, owner: str, message: str) -> None:
    """The configuration changed under this job, and no other runner takes its place."""
    move(
        job,
        JobStatus.FAILED,
        actor_label=f"dispatcher {owner}",
        reason=message,
        held_by=owner,
        failure_kind="no_runner",
        failure_message=message,
    )


def is_wanted(job: Job) -> bool:
    """Whether its run is still carried by somebody, or to be ended; `job` may be stale."""
    if not job.external_id:
        return True  # there is no run that could be let go of
    same = Job.objects.filter(pk=job.pk, external_id=job.external_id)
    return same.filter(Q(status__in=IN_FLIGHT) | Q(stop_due=True)).exists()


def runs_to_stop() -> list[Job]:
    return list(Job.objects.filter(stop_due=True))


def mark_stopped(job: Job) -> None:
    Job.objects.filter(pk=job.pk).update(stop_due=False)


def beat(owner: str, in_flight: int) -> None:
    """Say that this dispatcher is alive."""
    now = timezone.now()
    DispatcherHeartbeat.objects.update_or_create(
        owner=owner, defaults={"seen_at": now, "in_flight": in_flight}
    )
    DispatcherHeartbeat.objects.filter(seen_at__lt=now - HEARTBEAT_KEPT).delete()


def stop_beating(owner: str) -> None:
    DispatcherHeartbeat.objects.filter(owner=owner).delete()
