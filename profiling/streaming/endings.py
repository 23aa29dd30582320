"""How a stream ends: read from the rows, once the job is in a final state."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.conf import settings

from profiling.links import page_url
from profiling.models import ProfileRequest
from profiling.streaming.news import JobNews
from profiling.wire_result import WireResult, build_result
from runners.gpu.contract import FailureKind, Fault
from runners.handlers import KERNELGUARD_REJECTED
from runners.models import Job
from runners.states import JobStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """Messages for status events, then a result or the data of an error event.

    Or none of these yet, when another job `follows` on the one that ended.
    """

    messages: tuple[str, ...] = ()
    result: WireResult | None = None
    error: dict[str, Any] | None = None
    follows: tuple[UUID, JobNews] | None = None


def read_ending(request_id: UUID) -> Ending:
    """A fixed number of queries; the files themselves are opened later."""
    request = (
        ProfileRequest.objects.select_related("job", "revision", "submission__source")
        .defer("revision__definition_json")
        .get(pk=request_id)
    )
    assert request.job is not None
    captures = list(request.captures.select_related("artifact", "details"))
    look = f"look at it, for {settings.REVIEW_LINK_DAYS:g} days: {page_url(request)}"
    if request.job.status != JobStatus.SUCCEEDED or not captures:
        return Ending(messages=(look,), error=describe_failure(request, request.job))
    result = build_result(request, captures)
    return Ending(messages=(*result.messages, look), result=result)


def is_theirs(kind: str) -> bool:
    """Whether a job failed by something in the submission, which its sender may read."""
    known = kind in list(FailureKind) and FailureKind(kind).fault is not Fault.SERVICE
    return known or kind == KERNELGUARD_REJECTED


def describe_failure(request: ProfileRequest, job: Job) -> dict[str, Any]:
    """`detail`, `status_code` and `code` of a job that gave no result.

    Only what the GPU side says about the submission is passed on; our own failures are told by
    their kind, and as ours.
    """
    kind = job.failure_kind or "no_captures"
    words, reference = kind.replace("_", " "), f"reference {request.pk}"
    if job.status == JobStatus.CANCELLED:
        return {"detail": "the profile was cancelled", "status_code": 409, "code": "cancelled"}
    if job.status == JobStatus.TIMED_OUT:
        detail = (
            f"the profile did not finish in time ({words}); send it again, "
            f"or ask the operators ({reference})"
        )
        return {"detail": detail, "status_code": 504, "code": kind}
    if is_theirs(kind):
        return {"detail": job.failure_message, "status_code": 400, "code": kind}
    detail = (
        f"the service could not make this profile ({words}); nothing is wrong with the "
        f"submission. Try again later, or ask the operators ({reference})"
    )
    return {"detail": detail, "status_code": 503, "code": kind}
