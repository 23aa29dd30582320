"""A job's life as a table: docs/states.md draws it. Only transitions.move walks it."""

from __future__ import annotations

from django.db import models


class JobStatus(models.TextChoices):
    QUEUED = "queued"
    STARTING = "starting"
    RUNNING = "running"
    COLLECTING = "collecting"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    TIMED_OUT = "timed_out"
    CANCELLED = "cancelled"


_S = JobStatus
_ENDS = frozenset({_S.FAILED, _S.TIMED_OUT, _S.CANCELLED})
# Back to QUEUED is always a new attempt: what an old attempt still reports is ignored.
MOVES: dict[JobStatus, frozenset[JobStatus]] = {
    _S.QUEUED: _ENDS | {_S.STARTING},
    _S.STARTING: _ENDS | {_S.RUNNING, _S.QUEUED},
    _S.RUNNING: _ENDS | {_S.COLLECTING, _S.QUEUED},
    _S.COLLECTING: _ENDS | {_S.SUCCEEDED, _S.QUEUED},
    _S.SUCCEEDED: frozenset(),
    _S.FAILED: frozenset(),
    _S.TIMED_OUT: frozenset(),
    _S.CANCELLED: frozenset(),
}
FINAL = frozenset(status for status, onward in MOVES.items() if not onward)
ACTIVE = frozenset(MOVES) - FINAL
IN_FLIGHT = ACTIVE - {_S.QUEUED}

# What the CLI and the Brev protocol are told (architecture.md, States).
ON_THE_WIRE = {
    _S.QUEUED: "pending",
    _S.STARTING: "pending",
    _S.RUNNING: "running",
    _S.COLLECTING: "running",
    _S.SUCCEEDED: "succeeded",
    _S.FAILED: "failed",
    _S.TIMED_OUT: "timed_out",
    _S.CANCELLED: "failed",
}
