"""A job that this dispatcher carries, and the ways in which its journey ends or begins again."""

from __future__ import annotations

import logging
import random
import time
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.utils import timezone

from runners.backends.base import Runner
from runners.dispatcher.database import Threads
from runners.dispatcher.strays import end_run
from runners.exceptions import RunnerFault
from runners.models import Job, JobEvent
from runners.states import JobStatus
from runners.transitions import move

logger = logging.getLogger(__name__)

BACK_OFF_MAX_S = 15.0
RETRY_DELAY_MAX_S = 300.0


@dataclass(slots=True, kw_only=True)
class Holder:
    """This dispatcher as the holder of leases. `slow` is for work of seconds and minutes."""

    owner: str
    db: Threads = field(default_factory=Threads)
    slow: Threads = field(default_factory=Threads)

    @property
    def label(self) -> str:
        return f"dispatcher {self.owner}"


@dataclass(slots=True, kw_only=True)
class Flight:
    """`fresh`: claimed just now by this process, so that nothing can have been started yet."""

    job: Job
    runner: Runner
    holder: Holder
    fresh: bool
    key: tuple[UUID, int] = field(init=False)
    leased_until: datetime = field(init=False)
    carried_since: float = field(init=False, default_factory=time.monotonic)
    # Inside Runner.start, where an interruption would lose the run's id.
    starting: bool = False
    faults: int = 0
    faulty_since: float = 0

    def __post_init__(self) -> None:
        assert self.job.lease_until is not None
        self.key = (self.job.pk, self.job.attempt)
        self.leased_until = self.job.lease_until

    def is_leased(self) -> bool:
        """False when this process was stopped for so long that others may hold the job."""
        return timezone.now() < self.leased_until

    async def move(self, to: JobStatus, *, reason: str = "", **changes: Any) -> JobEvent:
        """Raises LostRace when the job is no longer ours."""
        return await self.holder.db(
            move,
            self.job,
            to,
            actor_label=self.holder.label,
            reason=reason,
            held_by=self.holder.owner,
            **changes,
        )

    async def end(self, to: JobStatus, *, kind: str, message: str) -> None:
        logger.warning("%s ends as %s: %s: %s", self.job, to, kind, message)
        await self.move(to, reason=message, failure_kind=kind, failure_message=message)

    async def requeue(self, *, kind: str, message: str, delay_s: float | None = None) -> None:
        """Another attempt after a while, or the end if there were enough."""
        if self.job.attempt >= settings.MAX_ATTEMPTS:
            await self.end(JobStatus.FAILED, kind=kind, message=message)
            return
        logger.warning("%s begins again: %s: %s", self.job, kind, message)
        if delay_s is None:
            delay_s = settings.RETRY_DELAY_S * 2 ** (self.job.attempt - 1)
        # Jobs that failed together must not come back together.
        delay_s = min(delay_s, RETRY_DELAY_MAX_S) * random.uniform(0.5, 1.5)  # noqa: S311
        not_before = timezone.now() + timedelta(seconds=delay_s)
        await self.move(JobStatus.QUEUED, reason=message, not_before=not_before)

    async def end_run(self, external_id: str) -> None:
        """Nobody wants this run any more; that it cannot be ended now is only logged."""
        try:
            await end_run(self.runner, external_id)
        except Exception:
            logger.exception("run %s of %s could not be ended", external_id, self.job)

    def back_off_s(self) -> float:
        """Seconds after the latest of some faults in a row."""
        pause: float = settings.POLL_EVERY_S * 2 ** min(self.faults, 10)
        return min(pause, BACK_OFF_MAX_S)

    async def bear(self, fault: RunnerFault, *, patience_s: float) -> float | None:
        """Seconds until the same is tried again; None when the job was failed instead."""
        now = time.monotonic()
        if not self.faults:
            self.faulty_since = now
        self.faults += 1
        if not fault.retryable or now - self.faulty_since >= patience_s:
            await self.end(JobStatus.FAILED, kind=fault.kind, message=str(fault))
            return None
        logger.warning("%s, fault %d: %s: %s", self.job, self.faults, fault.kind, fault)
        return self.back_off_s()
