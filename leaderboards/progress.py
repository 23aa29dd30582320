"""How far a submission is, in the words of the wire: one answer from its jobs and its stages.

`done` and the final status come from the same rows at once, so that no poll can see one without
the other (wire-contract.md, 5.3).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from runners.gpu.contract import FailureKind, Fault, Mode
from runners.states import FINAL, ON_THE_WIRE, JobStatus

HACKED = "hacked"


class Stage(Protocol):
    """What of a Run counts here."""

    @property
    def mode(self) -> str: ...
    @property
    def secret(self) -> bool: ...
    @property
    def passed(self) -> bool: ...
    @property
    def failure_message(self) -> str: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class PassState:
    """What of a pass's job counts here; `heard_at` is when there was last news of it."""

    status: JobStatus
    failure_kind: str = ""
    failure_message: str = ""
    heard_at: datetime | None = None

    @property
    def is_final(self) -> bool:
        return self.status in FINAL


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """`status` is one of pending, running, succeeded, failed, timed_out, hacked."""

    status: str
    done: bool
    error: str | None = None
    heard_at: datetime | None = None


def is_done(verdict: str, public: JobStatus, secret: JobStatus | None) -> bool:
    """A secret pass comes in the transaction that ends the public one, or never."""
    return verdict == HACKED or (public in FINAL and (secret is None or secret in FINAL))


def progress_of(
    *,
    submission_id: int,
    mode: str,
    gpu: str,
    verdict: str,
    public: PassState,
    secret: PassState | None,
    stages: Sequence[Stage],
) -> Progress:
    latest = secret or public
    status, error = ON_THE_WIRE[latest.status], None
    if verdict == HACKED:
        status = HACKED
        error = latest.failure_message or "rejected by the operators; it is not ranked"
    elif secret is not None and not secret.is_final:
        status = "running"  # a client that saw the public pass run is not sent back to the queue
    elif latest.status != JobStatus.SUCCEEDED:
        error = describe_failure(latest, submission_id) if latest.is_final else None
    elif mode == Mode.LEADERBOARD and (why := _why_unranked(gpu, secret, stages)):
        status, error = "failed", why
    return Progress(
        status=status,
        done=is_done(verdict, public.status, secret.status if secret else None),
        error=error,
        heard_at=latest.heard_at,
    )


def _why_unranked(gpu: str, secret: PassState | None, stages: Sequence[Stage]) -> str:
    """Of a leaderboard submission whose jobs all ended well."""
    wrong = next((stage for stage in stages if not stage.passed), None)
    if wrong is not None and wrong.secret:
        return f"the secret validation did not pass on {gpu}: it is not ranked"
    if wrong is not None:
        why = f" ({wrong.failure_message})" if wrong.failure_message else ""
        return f"the {wrong.mode} run did not pass on {gpu}: it is not ranked{why}"
    return "" if secret else f"the public run did not end well on {gpu}: it is not ranked"


def describe_failure(state: PassState, submission_id: int) -> str:
    """For the person who sent it. Our own failures are told by their kind, and as ours."""
    kind, reference = state.failure_kind, f"reference: submission {submission_id}"
    words = kind.replace("_", " ")
    if state.status == JobStatus.CANCELLED:
        return "the submission was cancelled"
    if state.status == JobStatus.TIMED_OUT:
        return (
            f"the submission did not finish in time ({words}); send it again, "
            f"or ask the operators ({reference})"
        )
    if kind in list(FailureKind) and FailureKind(kind).fault is not Fault.SERVICE:
        return state.failure_message
    return (
        f"the service could not run this submission ({words}); nothing is wrong with the "
        f"submission. Send it again later, or ask the operators ({reference})"
    )
