"""What the apps above do with a job of their kind, without `runners` knowing them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from runners.gpu.contract import JobConfig
from runners.gpu.envelope import Envelope
from runners.models import Artifact, Job, JobEvent

# The failure kind of a job whose code the pre-check rejected, so that nothing of it ran.
KERNELGUARD_REJECTED = "kernelguard_rejected"


@dataclass(frozen=True, slots=True, kw_only=True)
class Results:
    """What a handler read out of an envelope: `facts` is its own.

    A `failure_kind` means that the service failed the job as a whole; what the submission did
    wrong is among the facts of a job that succeeded.
    """

    facts: Any
    failure_kind: str = ""
    failure_message: str = ""


class JobHandler(Protocol):
    """Registered per kind. All methods are synchronous and may be called again after a crash."""

    def build_config(self, job: Job) -> JobConfig:
        """The task config of this attempt, from rows alone."""
        ...

    def code_to_check(self, job: Job) -> str | None:
        """What KernelGuard is to read before anything runs; None where there is no need.

        A rejection ends the job with the failure kind KERNELGUARD_REJECTED.
        """
        ...

    def moved(self, job: Job, event: JobEvent) -> None:
        """Write the audit row of this move; inside its transaction, so nothing slow or remote."""
        ...

    def read_results(self, job: Job, envelope: Envelope) -> Results:
        """The slow part: read what came back. Writes nothing."""
        ...

    def keep_results(self, job: Job, results: Results, artifacts: dict[str, Artifact]) -> None:
        """Write rows for what came back; in the transaction of the final move."""
        ...


_handlers: dict[str, JobHandler] = {}


def register(kind: str, handler: JobHandler) -> None:
    """Called once per kind, in the `ready` of the app that owns it."""
    _handlers[kind] = handler


def handler_of(job: Job) -> JobHandler:
    return _handlers[job.kind]
