"""The dispatcher: one asyncio loop that carries every job in flight, since all of it is waiting."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import time
import uuid
from collections.abc import Awaitable, Callable, Collection
from contextlib import suppress
from datetime import timedelta
from uuid import UUID

from django.conf import settings
from django.utils import timezone

from runners.backends import make_runner
from runners.backends.base import Runner
from runners.bell import hear
from runners.dispatcher import reap
from runners.dispatcher.claim import claim_jobs
from runners.dispatcher.flight import Flight, Holder
from runners.dispatcher.poll import poll_job
from runners.dispatcher.start import start_job
from runners.dispatcher.strays import SWEEP_BACK, end_run, end_strays
from runners.exceptions import LostRace, RunnerFault
from runners.models import Job
from runners.states import JobStatus

logger = logging.getLogger(__name__)

DB_THREADS = 4
SLOW_THREADS = 2
# How long an orderly end waits for what is being done, above all for starts: the ids of those that it
# interrupts are lost, and whoever comes next must wait until nothing of them can run any more.
FAREWELL_S = 5.0
# A run that could not be ended is tried again after this.
STOP_AGAIN_S = 30.0
# Strays are rare, and asking for them is dear at some providers.
SWEEP_EVERY_S = 300.0


def make_owner() -> str:
    """A name that no other dispatcher has or had."""
    return f"{socket.gethostname()[:32]}-{os.getpid()}-{uuid.uuid4().hex[:8]}"


class Dispatcher:
    """`run` until `stop`; or `step` by step, in the caller's own thread and transaction."""

    def __init__(self, owner: str) -> None:
        self.holder = Holder(owner=owner)
        self.flights: dict[tuple[UUID, int], Flight] = {}
        self._tasks: dict[tuple[UUID, int], asyncio.Task[None]] = {}
        self._runners: dict[str, Runner] = {}
        self._far_leases = reap.FarLeases()
        self._stop_again: dict[UUID, float] = {}
        self._renew_at = 0.0
        self._stopping = asyncio.Event()
        self._bell = asyncio.Event()
        self._is_running = False

    def stop(self) -> None:
        """Claim nothing more and return from `run` soon; what runs on GPUs is left alone."""
        self._stopping.set()
        self._bell.set()

    async def run(self) -> None:
        """Returns some seconds after `stop`, having released all leases."""
        self.holder.db.open("database", DB_THREADS)
        self.holder.slow.open("collect", SLOW_THREADS)
        self._is_running = True
        logger.info("%s begins", self.holder.label)
        # A place in flight may have become free, or a job come: a look costs one short query.
        hearing = asyncio.create_task(hear(lambda _: self._bell.set()))
        chores = [
            asyncio.create_task(self._repeat(self.hold_on, settings.POLL_EVERY_S)),
            asyncio.create_task(self._repeat(self.take_over, settings.POLL_EVERY_S)),
            asyncio.create_task(self._repeat(self.claim, settings.POLL_EVERY_S, self._bell)),
            asyncio.create_task(self._repeat(self.stop_runs, settings.POLL_EVERY_S)),
            asyncio.create_task(self._repeat(self.sweep, SWEEP_EVERY_S)),
        ]
        await self._stopping.wait()
        _, late = await asyncio.wait(chores, timeout=FAREWELL_S)
        await _cancel([*late, hearing])
        await self._land()
        logger.info("%s ends", self.holder.label)

    async def step(self) -> bool:
        """One round: one step of each job, one after the other. False when there was none."""
        await self.hold_on()
        await self.take_over()
        await self.claim()
        flights = list(self.flights.values())
        for flight in flights:
            if await self.advance(flight) is None:
                self._forget(flight)
        await self.stop_runs()
        return bool(flights)

    async def hold_on(self) -> None:
        """Renew the leases in time, and drop the jobs that somebody ended or took."""
        db, owner = self.holder.db, self.holder.owner
        carried = dict(self.flights)
        until = timezone.now() + timedelta(seconds=settings.LEASE_S)
        is_renewal = time.monotonic() >= self._renew_at
        if is_renewal:
            self._renew_at = time.monotonic() + settings.LEASE_S / 3
            await db(reap.renew_leases, owner, [job for job, _ in carried], until)
            await db(reap.beat, owner, len(carried))
        held = await db(reap.held_jobs, owner)
        for key, flight in carried.items():
            if key not in held:
                await self._drop(flight)
            elif is_renewal:
                flight.leased_until = until

    async def take_over(self) -> None:
        """Jobs that nobody holds any more; and end what waited too long for its turn."""
        db, owner = self.holder.db, self.holder.owner
        await db(reap.time_out_queue, owner)
        for job in await db(reap.take_over, owner, self._far_leases):
            await self._carry(job, fresh=False)

    async def claim(self) -> None:
        """New jobs."""
        self._bell.clear()  # whatever changes from now on rings for the next look
        for job in await self.holder.db(claim_jobs, self.holder.owner):
            await self._carry(job, fresh=True)

    async def stop_runs(self) -> None:
        """End and release the runs of jobs that are over."""
        now = time.monotonic()
        for job in await self.holder.db(reap.runs_to_stop):
            if now < self._stop_again.get(job.pk, 0):
                continue
            try:
                runner, is_wanted = self._runner(job.runner), job.status == JobStatus.SUCCEEDED
                await end_run(runner, job.external_id, cancel=not is_wanted)
            except Exception:
                logger.exception("the run of %s could not be ended", job)
                self._stop_again[job.pk] = now + STOP_AGAIN_S
                continue
            await self.holder.db(reap.mark_stopped, job)
            self._stop_again.pop(job.pk, None)

    async def sweep(self) -> None:
        """End runs that no row names, of every runner that is in use."""
        since = timezone.now() - SWEEP_BACK
        for name in sorted({gpu.runner for gpu in settings.GPU_TYPES.values()}):
            try:
                await end_strays(self._runner(name), self.holder.db, since)
            except (RunnerFault, TimeoutError) as fault:
                logger.warning("the strays of %s are not ended: %r", name, fault)

    async def advance(self, flight: Flight) -> float | None:
        """One step; seconds until the next, None when the job is off our hands. Never raises."""
        step = start_job if flight.job.status == JobStatus.STARTING else poll_job
        try:
            return await step(flight)
        except LostRace as error:
            logger.info("%s", error)
            await self._let_go(flight)
            return None
        except Exception:
            # The row stays ours, so it is tried again, but ever more slowly.
            logger.exception("a step of %s failed", flight.job)
            flight.faults += 1
            return flight.back_off_s()

    async def _carry(self, job: Job, *, fresh: bool) -> None:
        try:
            runner = self._runner(job.runner)
        except LookupError as error:
            await self.holder.db(reap.fail_without_runner, job, self.holder.owner, str(error))
            return
        flight = Flight(job=job, runner=runner, holder=self.holder, fresh=fresh)
        if flight.key in self.flights:
            return  # our own lease ran out, and we took it over from ourselves
        self.flights[flight.key] = flight
        if self._is_running:
            task = asyncio.create_task(self._fly(flight))
            self._tasks[flight.key] = task
            task.add_done_callback(lambda _: self._forget(flight))

    async def _fly(self, flight: Flight) -> None:
        while (wait := await self.advance(flight)) is not None:  # noqa: ASYNC110  its own pace
            await asyncio.sleep(wait)

    def _forget(self, flight: Flight) -> None:
        self.flights.pop(flight.key, None)
        self._tasks.pop(flight.key, None)

    async def _drop(self, flight: Flight) -> None:
        """It is no longer ours. A start under way finds that out by itself and ends its run."""
        if flight.starting:
            return
        if task := self._tasks.get(flight.key):
            task.cancel()
        else:
            self._forget(flight)
        await self._let_go(flight)

    async def _let_go(self, flight: Flight) -> None:
        """Another dispatcher ended this job: what we fetched since would lie here for nobody."""
        try:
            if await self.holder.db(reap.is_wanted, flight.job):
                return
            async with asyncio.timeout(FAREWELL_S):
                await flight.runner.release(flight.job.external_id)
        except Exception:
            logger.exception("what was fetched for %s is not let go of", flight.job)

    async def _repeat(
        self,
        action: Callable[[], Awaitable[None]],
        every_s: float,
        bell: asyncio.Event | None = None,
    ) -> None:
        """Whatever happens in one round, there is a next one; at once when the bell was rung."""
        bell = bell or self._stopping
        while not self._stopping.is_set():
            try:
                await action()
            except Exception:
                logger.exception("%s: %s failed", self.holder.label, action.__name__)
            with suppress(TimeoutError):
                await asyncio.wait_for(bell.wait(), every_s)

    async def _land(self) -> None:
        deadline = time.monotonic() + FAREWELL_S
        while time.monotonic() < deadline:
            if not any(flight.fresh or flight.starting for flight in self.flights.values()):
                break
            await asyncio.sleep(0.05)
        await _cancel(list(self._tasks.values()))
        await self.holder.db(reap.release_leases, self.holder.owner)
        await self.holder.db(reap.stop_beating, self.holder.owner)
        self.holder.db.close()
        self.holder.slow.close()

    def _runner(self, name: str) -> Runner:
        if name not in self._runners:
            self._runners[name] = make_runner(name)
        return self._runners[name]


async def _cancel(tasks: Collection[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
