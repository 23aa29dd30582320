"""Send a claimed job to its runner, and find out about a start whose answer was lost."""

from __future__ import annotations

import asyncio
import logging
import time
from datetime import timedelta

from django.conf import settings
from django.utils import timezone

from runners.backends.base import START_UNKNOWN
from runners.dispatcher.flight import Flight
from runners.dispatcher.kernelguard import check_code
from runners.dispatcher.strays import SWEEP_BACK, end_strays, settling_time
from runners.exceptions import LostRace, RunnerFault
from runners.gpu.contract import JobConfig
from runners.handlers import handler_of
from runners.states import JobStatus

logger = logging.getLogger(__name__)


async def start_job(flight: Flight) -> float | None:
    """STARTING to RUNNING; seconds until the next step, None when the job is off our hands."""
    if not flight.fresh:
        return await recover_start(flight)
    config = await _config_of(flight)
    if config is None or not await _is_let_through(flight):
        return None
    if not flight.is_leased():
        return None
    flight.fresh, flight.starting = False, True
    try:
        return await _start(flight, config)
    except RunnerFault as fault:
        if fault.kind == START_UNKNOWN:
            logger.warning("%s: it is not known whether it was started: %s", flight.job, fault)
            return float(settings.POLL_EVERY_S)
        if fault.retryable:
            await flight.requeue(kind=fault.kind, message=str(fault))
        else:
            await flight.end(JobStatus.FAILED, kind=fault.kind, message=str(fault))
        return None
    finally:
        flight.starting = False


async def _config_of(flight: Flight) -> JobConfig | None:
    try:
        return await flight.holder.db(handler_of(flight.job).build_config, flight.job)
    except RunnerFault as fault:
        await flight.end(JobStatus.FAILED, kind=fault.kind, message=str(fault))
    except Exception:
        logger.exception("the config of %s cannot be built", flight.job)
        await flight.requeue(
            kind="config_failed",
            message="The service could not prepare this run; the operators see why in the log.",
            delay_s=settings.POISON_DELAY_S,
        )
    return None


async def _is_let_through(flight: Flight) -> bool:
    """It may take minutes, in which the job can be cancelled as before."""
    if not settings.KERNELGUARD_COMMAND:
        return True
    code = await flight.holder.db(handler_of(flight.job).code_to_check, flight.job)
    if code is None:
        return True
    try:
        await check_code(code)
    except RunnerFault as fault:
        await flight.end(JobStatus.FAILED, kind=fault.kind, message=str(fault))
        return False
    return True


async def _start(flight: Flight, config: JobConfig) -> float | None:
    try:
        async with asyncio.timeout(settings.START_LIMIT_S):
            external_id = await flight.runner.start(flight.job.gpu, config)
    except TimeoutError as error:
        raise RunnerFault("no answer in time", kind=START_UNKNOWN, retryable=True) from error
    except RunnerFault:
        raise
    except Exception as error:
        logger.exception("the runner failed to start %s", flight.job)
        raise RunnerFault("the runner failed", kind=START_UNKNOWN, retryable=True) from error
    try:
        await flight.move(JobStatus.RUNNING, external_id=external_id)
    except Exception as error:
        # Cancelled meanwhile, somebody else's by now, or the database is away.
        await flight.end_run(external_id)
        if isinstance(error, LostRace):
            raise
        raise RunnerFault("its id was not saved", kind=START_UNKNOWN, retryable=True) from error
    return 0


async def recover_start(flight: Flight) -> float | None:
    """Start again what was lost on the way, once it is certain that nothing of it runs (FR-30)."""
    job = flight.job
    assert job.starting_at is not None
    now, carried_s = timezone.now(), time.monotonic() - flight.carried_since
    if now < job.starting_at + settling_time() and carried_s < settling_time().total_seconds():
        return float(settings.POLL_EVERY_S)
    # The provider's clock is not ours; and ours was ahead if this start lies in the future.
    since = job.starting_at - timedelta(seconds=settings.START_MARGIN_S)
    if job.starting_at > now:
        since = now - SWEEP_BACK
    try:
        is_certain = await end_strays(flight.runner, flight.holder.db, since)
    except TimeoutError:
        return flight.back_off_s()
    except RunnerFault as fault:
        return await flight.bear(fault, patience_s=settings.POLL_PATIENCE_S)
    if not is_certain:
        return float(settings.POLL_EVERY_S)
    await flight.requeue(
        kind="start_lost",
        message="The start of this run was interrupted, and nothing of it runs any more.",
        delay_s=0,
    )
    return None
