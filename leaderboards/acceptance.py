"""The one place where a prepared submission becomes rows, whatever its mode."""

from __future__ import annotations

import math
from datetime import datetime, timedelta

from django.db import transaction
from django.utils import timezone

from leaderboards import audit
from leaderboards.audit import NO_REQUEST, RequestContext
from leaderboards.exceptions import GpuPaused, HourlyLimitReached, NotAccepting
from leaderboards.models import (
    AcceptanceSwitch,
    Leaderboard,
    ModeCategory,
    PopcornUser,
    RateLimit,
    Submission,
    SubmissionJob,
    SubmissionSource,
)
from leaderboards.preparation import Prepared
from leaderboards.verbs import SubmissionVerb
from runners.gpu.contract import Mode
from runners.models import Job
from runners.pauses import paused_gpus
from runners.registry import GpuType
from runners.transitions import queue_job

RETRY_S = 600
HOUR = timedelta(hours=1)
# By 13.4, profiles count as tests do.
CATEGORIES = {
    Mode.TEST: ModeCategory.TEST,
    Mode.BENCHMARK: ModeCategory.TEST,
    Mode.PROFILE: ModeCategory.TEST,
    Mode.LEADERBOARD: ModeCategory.LEADERBOARD,
}


@transaction.atomic
def accept_submission(
    prepared: Prepared, *, actor: PopcornUser, mode: Mode, context: RequestContext = NO_REQUEST
) -> SubmissionJob:
    """Write source, submission and queued job, in one transaction with what the caller adds.

    The job's kind is the mode. Raises NotAccepting or GpuPaused (503) or HourlyLimitReached (429).
    """
    require_accepting()
    require_not_paused(prepared.gpu)
    _require_place(prepared.leaderboard, actor, CATEGORIES[mode])
    submission = Submission.objects.create(
        user=actor,
        leaderboard=prepared.leaderboard,
        revision=prepared.revision,
        source=SubmissionSource.keep(prepared.content),
        file_name=prepared.file_name,
        mode=mode,
        gpu=prepared.gpu.name,
    )
    job = queue_job(
        kind=mode,
        gpu=prepared.gpu.name,
        runner=prepared.gpu.runner,
        owner_key=actor.user_id,
        actor_label=actor.actor_label,
    )
    audit.record(
        SubmissionVerb.ACCEPTED,
        submission,
        actor=actor,
        context=context,
        leaderboard=prepared.leaderboard.name,
        gpu=prepared.gpu.name,
        mode=mode,
        job=str(job.pk),
        source_sha256=submission.source_id,
    )
    return SubmissionJob.objects.create(submission=submission, job=job)


def queue_secret_pass(public: SubmissionJob) -> SubmissionJob:
    """The second pass of a submission whose public one was good, in the caller's transaction."""
    submission, first = public.submission, public.job
    job: Job = queue_job(
        kind=first.kind,
        gpu=first.gpu,
        runner=first.runner,
        owner_key=first.owner_key,
        actor_label=audit.SYSTEM_LABEL,
    )
    audit.record(SubmissionVerb.SECRET_PASS_QUEUED, submission, actor=None, job=str(job.pk))
    return SubmissionJob.objects.create(submission=submission, job=job, secret=True)


def require_accepting() -> None:
    """Raises NotAccepting while an operator has stopped submissions."""
    switch = AcceptanceSwitch.objects.first()
    if switch is not None and not switch.accepts:
        raise NotAccepting(
            "submissions are not accepted at the moment, because the operators have stopped them; "
            "try again later",
            retry_after=RETRY_S,
        )


def require_not_paused(gpu: GpuType) -> None:
    """Raises GpuPaused while no job is started on this GPU type."""
    pause = paused_gpus().get(gpu.name)
    if pause is not None:
        raise GpuPaused(
            f"{gpu.name} is paused since {pause.paused_at:%Y-%m-%d %H:%M} UTC, because "
            "its machines cannot do the work at present. That is a fault of this service; nothing "
            "is wrong with your submission. Please try again later",
            retry_after=RETRY_S,
        )


def _require_place(board: Leaderboard, user: PopcornUser, category: ModeCategory) -> None:
    """Raises HourlyLimitReached. What it counts stays true until the transaction ends.

    The person's row is locked: of two requests for the last place, the second waits for the first
    and then counts it. SQLite has no such locks, and one writer at a time.
    """
    limit = RateLimit.objects.filter(leaderboard=board, mode_category=category).first()
    if limit is None:
        return
    PopcornUser.objects.select_for_update(no_key=True).get(pk=user.pk)
    maximum, now = limit.max_submissions_per_hour, timezone.now()
    recent = Submission.objects.filter(
        user=user,
        leaderboard=board,
        mode__in=[mode for mode, of in CATEGORIES.items() if of == category],
        created_at__gt=now - HOUR,
    )
    times = list(recent.order_by("-created_at").values_list("created_at", flat=True))
    if len(times) < maximum:
        return
    wait = _seconds_until_free(times, maximum, now)
    again = f"try again in {wait} seconds" if maximum else "none is accepted"
    raise HourlyLimitReached(
        f"{len(times)} of at most {maximum} submissions an hour were sent to {board.name!r} "
        f"in the category {category.value!r}: {again}",
        retry_after=wait,
    )


def _seconds_until_free(newest_first: list[datetime], maximum: int, now: datetime) -> int:
    """Until the oldest of those that fill all places is an hour old; 0 when there are no places."""
    if not maximum:
        return 0
    return max(1, math.ceil((newest_first[maximum - 1] + HOUR - now).total_seconds()))
