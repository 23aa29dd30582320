"""Writing the audit trail: explicit calls, in the transaction of the deed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Required, TypedDict

from django.db.models import Model

from leaderboards.models import AuditEvent, PopcornUser
from runners.models import Job, JobEvent


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestContext:
    """Where a deed came from: empty for commands and the dispatcher."""

    request_id: str = ""
    address: str | None = None
    client_version: str = ""


NO_REQUEST = RequestContext()
SYSTEM_LABEL = "system"


class By(TypedDict, total=False):
    """Who does a deed and where from, as its keyword arguments: `actor` is said even if it is None.

    `actor_label` names who is no person of ours, as the holder of the admin token.
    """

    actor: Required[PopcornUser | None]
    actor_label: str
    context: RequestContext


def record(
    verb: str,
    subject: Model,
    *,
    actor: PopcornUser | None,
    actor_label: str = "",
    context: RequestContext = NO_REQUEST,
    **data: Any,
) -> AuditEvent:
    """Add one row. `data` must be JSON; verbs are listed in the verbs.py of the app that writes."""
    return AuditEvent.objects.create(
        verb=verb,
        actor=actor,
        actor_label=actor_label or (actor.actor_label if actor else SYSTEM_LABEL),
        subject_kind=str(subject._meta.model_name),
        subject_id=str(subject.pk),
        request_id=context.request_id,
        address=context.address,
        client_version=context.client_version,
        data=data,
    )


def record_move(verb: str, subject: Model, job: Job, event: JobEvent, **data: Any) -> AuditEvent:
    """Add the row of a change of a job's status, in the transaction that made it."""
    return record(
        verb,
        subject,
        actor=None,
        actor_label=event.actor_label,
        job=str(job.pk),
        attempt=event.attempt,
        from_status=event.from_status,
        to_status=event.to_status,
        reason=event.reason,
        failure_kind=job.failure_kind,
        **data,
    )
