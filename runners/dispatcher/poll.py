"""Ask for news of a run, and see to it that it does not run for ever."""

from __future__ import annotations

import asyncio
import logging
from datetime import timedelta

from django.conf import settings
from django.utils import timezone

from runners.backends.base import RUN_LOST, Finished, Pending
from runners.dispatcher.collect import collect
from runners.dispatcher.flight import Flight
from runners.exceptions import RunnerFault
from runners.models import Job
from runners.states import JobStatus

logger = logging.getLogger(__name__)

# A runner may wait for news for some seconds; one that hangs is a fault.
POLL_LIMIT_S = 60.0


async def poll_job(flight: Flight) -> float | None:
    """One step of a RUNNING or COLLECTING job; seconds until the next, None when it is done."""
    if _is_over_the_wall(flight.job):
        await flight.end(
            JobStatus.TIMED_OUT,
            kind="run_wall",
            message=f"The run did not end within {settings.RUN_WALL_S:g} s and was stopped by the "
            "service. Send it again; if this comes back, tell the operators.",
        )
        return None
    try:
        news = await _poll(flight)
    except RunnerFault as fault:
        return await _after_fault(flight, fault)
    if isinstance(news, Finished):
        return await collect(flight, news.envelope)
    flight.faults = 0
    if news.phase != flight.job.phase:
        await flight.holder.db(_save_phase, flight.job, flight.holder.owner, news.phase)
    return float(settings.POLL_EVERY_S)


def _is_over_the_wall(job: Job) -> bool:
    if job.status != JobStatus.RUNNING or job.running_at is None:
        return False
    return timezone.now() > job.running_at + timedelta(seconds=settings.RUN_WALL_S)


async def _poll(flight: Flight) -> Pending | Finished:
    try:
        async with asyncio.timeout(POLL_LIMIT_S):
            return await flight.runner.poll(flight.job.external_id)
    except RunnerFault:
        raise
    except TimeoutError as error:
        raise RunnerFault(
            "The GPU provider did not answer in time.", kind="poll_timeout", retryable=True
        ) from error
    except Exception as error:
        logger.exception("the runner failed to poll %s", flight.job)
        raise RunnerFault(
            "The service failed to ask for this run; the operators see why in the log.",
            kind="poll_failed",
            retryable=True,
        ) from error


async def _after_fault(flight: Flight, fault: RunnerFault) -> float | None:
    if fault.kind == RUN_LOST and not await flight.holder.db(_was_lost_before, flight.job):
        # Nothing may still run when the next attempt begins, and its id is forgotten by then.
        await flight.end_run(flight.job.external_id)
        await flight.requeue(kind=fault.kind, message=str(fault))
        return None
    if fault.kind == RUN_LOST:
        await flight.end(JobStatus.FAILED, kind=fault.kind, message=str(fault))
        return None
    return await flight.bear(fault, patience_s=settings.POLL_PATIENCE_S)


def _was_lost_before(job: Job) -> bool:
    """Whether a running attempt was begun again already; a second time is no accident."""
    after_start = [JobStatus.RUNNING, JobStatus.COLLECTING]
    return job.events.filter(from_status__in=after_start, to_status=JobStatus.QUEUED).exists()


def _save_phase(job: Job, owner: str, phase: str) -> None:
    job.phase = phase[: Job._meta.get_field("phase").max_length]
    Job.objects.filter(
        pk=job.pk, attempt=job.attempt, status=JobStatus.RUNNING, lease_owner=owner
    ).update(phase=job.phase)
