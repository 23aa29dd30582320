"""The Runner protocol: all that the dispatcher knows of a provider of GPUs."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Protocol

from runners.gpu.contract import JobConfig

# Kinds of RunnerFault that say more than their words.
# poll: the run is over and left no result, so that another attempt cannot make two runs of one.
RUN_LOST = "run_lost"
# start: it cannot be known whether something was started.
START_UNKNOWN = "start_unknown"


@dataclass(frozen=True, slots=True)
class Pending:
    """Not finished; `phase` is what it does, in words, empty when the provider cannot tell."""

    phase: str = ""


@dataclass(frozen=True, slots=True)
class Finished:
    """The envelope lies in a file of this machine; `release` may delete it."""

    envelope: Path


@dataclass(frozen=True, slots=True)
class KnownRun:
    """A run that the provider knows of; `started_at` is aware."""

    external_id: str
    started_at: datetime


class Runner(Protocol):
    """Starts a task config on a GPU and gives its envelope back.

    Every method may be called again after a crash, from another process. All raise RunnerFault.
    """

    name: str

    async def start(self, gpu: str, config: JobConfig) -> str:
        """Send a job and return its external id at once; does not wait for a GPU.

        A RunnerFault means that nothing was started, unless its kind is START_UNKNOWN.
        """
        ...

    async def poll(self, external_id: str) -> Pending | Finished:
        """Ask once. May wait for news for some seconds, never for minutes.

        A retryable RunnerFault means to ask again, RUN_LOST that asking is over.
        """
        ...

    async def cancel(self, external_id: str) -> None:
        """End a run and all its processes; one that has ended or is not known is no error."""
        ...

    async def release(self, external_id: str) -> None:
        """What is kept for this run may go: its result is stored, or nobody wants it."""
        ...

    async def unclaimed(self, since: datetime) -> list[KnownRun]:
        """Runs started after `since`, among them some that no row may know."""
        ...

    async def queue_depth(self, gpu: str) -> int | None:
        """Runs that wait at the provider for this GPU; None when it cannot tell."""
        ...
