"""The one writer of a job's status: a table, a compare-and-swap, an event, an audit row."""

from __future__ import annotations

from typing import Any

from django.db import transaction
from django.db.models import F
from django.utils import timezone

from runners.exceptions import IllegalMove, LostRace
from runners.handlers import handler_of
from runners.models import Job, JobEvent
from runners.states import FINAL, IN_FLIGHT, MOVES, JobStatus

_S = JobStatus
_TIMESTAMP = {_S.STARTING: "starting_at", _S.RUNNING: "running_at", _S.QUEUED: "queued_at"}


def queue_job(*, kind: str, gpu: str, runner: str, owner_key: str, actor_label: str) -> Job:
    """A new job in the queue, with its first event. The caller's transaction makes its own rows."""
    with transaction.atomic():
        job = Job.objects.create(kind=kind, gpu=gpu, runner=runner, owner_key=owner_key)
        JobEvent.objects.create(
            job=job, to_status=_S.QUEUED, attempt=job.attempt, actor_label=actor_label
        )
    return job


def move(
    job: Job,
    to: JobStatus,
    *,
    actor_label: str,
    reason: str = "",
    held_by: str | None = None,
    **changes: Any,
) -> JobEvent:
    """Move a job along the table, with its event and its audit row, in one transaction.

    `held_by` is the lease owner that a dispatcher believes to be; a dispatcher that lost its lease
    writes nothing. `changes` are further columns. Raises IllegalMove or LostRace, and then nothing
    was written; `job` is refreshed only by a move that happened.
    """
    source = JobStatus(job.status)
    if to not in MOVES[source]:
        raise IllegalMove(f"{source} -> {to}")
    unchanged = Job.objects.filter(pk=job.pk, status=source, attempt=job.attempt)
    if held_by is not None:
        unchanged = unchanged.filter(lease_owner=held_by)
    with transaction.atomic():
        if unchanged.update(status=to, **_implied(job, source, to), **changes) != 1:
            raise LostRace(f"job {job.pk} is no longer {source}, attempt {job.attempt}, and ours")
        moved = Job.objects.get(pk=job.pk)
        event = JobEvent.objects.create(
            job=moved,
            from_status=source,
            to_status=to,
            attempt=moved.attempt,
            actor_label=actor_label,
            reason=reason,
        )
        handler_of(moved).moved(moved, event)
    job.refresh_from_db()
    return event


def _implied(job: Job, source: JobStatus, to: JobStatus) -> dict[str, Any]:
    """The columns that follow from the move itself."""
    now = timezone.now()
    implied: dict[str, Any] = {}
    if to in _TIMESTAMP:
        implied[_TIMESTAMP[to]] = now
    if to == _S.QUEUED:
        implied |= {"attempt": F("attempt") + 1, "external_id": "", "phase": ""}
    if to == _S.COLLECTING:
        implied["phase"] = ""
    if to not in IN_FLIGHT:
        implied |= {"lease_owner": "", "lease_until": None}
    if to in FINAL:
        implied |= {"finished_at": now, "phase": ""}
        # What the provider still runs or keeps for this job is ended and released afterwards.
        implied["stop_due"] = source in IN_FLIGHT and bool(job.external_id)
    return implied
