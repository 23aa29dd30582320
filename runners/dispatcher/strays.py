"""Runs at a provider that no row names: a start was interrupted, or an end did not get through."""

from __future__ import annotations

import asyncio
import logging
from datetime import datetime, timedelta
from uuid import uuid4

from django.conf import settings
from django.db import DatabaseError
from django.utils import timezone

from runners.backends.base import Runner
from runners.dispatcher.database import Threads
from runners.dispatcher.turns import end_turn, take_turn
from runners.models import Job

logger = logging.getLogger(__name__)

# Ending a family of processes takes seconds; a provider that hangs must not hold up the others.
END_LIMIT_S = 60.0
# No run lasts for longer than a day.
SWEEP_BACK = timedelta(days=1)


def settling_time() -> timedelta:
    """How long after a start its run may still be without a row."""
    return timedelta(seconds=settings.START_LIMIT_S + settings.START_MARGIN_S)


async def end_run(runner: Runner, external_id: str, *, cancel: bool = True) -> None:
    """End a run and let go of what is kept for it. Raises RunnerFault, or TimeoutError."""
    async with asyncio.timeout(END_LIMIT_S):
        if cancel:
            await runner.cancel(external_id)
        await runner.release(external_id)


async def end_strays(runner: Runner, db: Threads, since: datetime) -> bool:
    """End what is surely nobody's, and say whether nothing is left that might be.

    False where a run is so young that its id may just be on its way, or where another dispatcher
    is at it. Raises RunnerFault, or TimeoutError.
    """
    turn = f"strays of {runner.name}", uuid4().hex
    if not await db(take_turn, *turn, settings.LEASE_S):
        return False
    renewing = asyncio.create_task(_keep_turn(db, turn))
    try:
        return await _end_in_turn(runner, db, since, turn)
    finally:
        renewing.cancel()
        await asyncio.wait([renewing])
        await db(end_turn, *turn)


async def _keep_turn(db: Threads, turn: tuple[str, str]) -> None:
    """Renewed while providers are slow, and short: a dispatcher that was killed holds nobody up."""
    while True:
        await asyncio.sleep(settings.LEASE_S / 3)
        try:
            await db(take_turn, *turn, settings.LEASE_S)
        except DatabaseError:
            logger.exception("the turn is not renewed")


async def _end_in_turn(runner: Runner, db: Threads, since: datetime, turn: tuple[str, str]) -> bool:
    async with asyncio.timeout(END_LIMIT_S):
        runs = await runner.unclaimed(since)
    known = await db(_known_ids, runner.name, [run.external_id for run in runs])
    young = False
    for run in runs:
        if run.external_id in known:
            continue
        if timezone.now() < run.started_at + settling_time():
            young = True
            continue
        if not await db(take_turn, *turn, settings.LEASE_S):  # this process was stopped for a while
            return False
        logger.warning("run %s at %s belongs to no row", run.external_id, runner.name)
        await end_run(runner, run.external_id)
    return not young


def _known_ids(runner: str, external_ids: list[str]) -> set[str]:
    found = Job.objects.filter(runner=runner, external_id__in=external_ids)
    return set(found.values_list("external_id", flat=True))
