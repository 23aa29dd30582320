"""Sending a submission in the modes that this app runs; profiles have requests of their own."""

from __future__ import annotations

from dataclasses import dataclass

from leaderboards import audit
from leaderboards.acceptance import accept_submission
from leaderboards.audit import NO_REQUEST, RequestContext
from leaderboards.models import ClientId, PopcornUser, SubmissionJob
from leaderboards.preparation import prepare
from leaderboards.verbs import SubmissionVerb
from runners.exceptions import ServiceError
from runners.gpu.contract import Mode

TOLD_CHARS = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmissionOrder:
    """What a client sends, as it sent it; `via` is the kind of its id."""

    leaderboard_name: str
    gpu_name: str
    mode: Mode
    file_name: str
    content: bytes
    via: ClientId.Kind = ClientId.Kind.CLI


def submit(
    order: SubmissionOrder,
    *,
    actor: PopcornUser,
    context: RequestContext = NO_REQUEST,
    ignore_deadline: bool = False,
) -> SubmissionJob:
    """Prepare a submission in test, benchmark or leaderboard mode and put it in the queue.

    Raises the ServiceError of whatever is wrong, after recording it.
    """
    if order.mode is Mode.PROFILE:
        raise ValueError("a profile is asked for with a request of its own")
    try:
        prepared = prepare(
            user=actor,
            leaderboard_name=order.leaderboard_name,
            gpu_name=order.gpu_name,
            mode=order.mode,
            file_name=order.file_name,
            content=order.content,
            via=order.via,
            ignore_deadline=ignore_deadline,
        )
        return accept_submission(prepared, actor=actor, mode=order.mode, context=context)
    except ServiceError as error:
        audit.record(
            SubmissionVerb.REFUSED,
            actor,
            actor=actor,
            context=context,
            status=error.http_status,
            code=error.code,
            leaderboard=_told(order.leaderboard_name),
            gpu=_told(order.gpu_name),
            mode=order.mode,
        )
        raise


def _told(name: str) -> str:
    """What was sent, as far as every database can keep it."""
    return ascii(name[:TOLD_CHARS])[1:-1]
