"""What a pass of a submission gave: its stages as Run rows that are not saved yet."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.utils import timezone

from leaderboards.models import Run, Submission, SubmissionJob
from leaderboards.scoring import NoScore, score_of
from leaderboards.stream_use import warn_of_stream_use
from runners.gpu import wire
from runners.gpu.contract import (
    Failure,
    FailureKind,
    Fault,
    JobOutcome,
    Mode,
    RunRecord,
)
from runners.gpu.job import STAGES
from runners.models import Job

MESSAGE_CHARS = 10_000
NO_SCORE = "no_score"
_NOTHING = Failure(
    kind=FailureKind.GPU_SIDE_CRASHED,
    message="The GPU side sent no result. This is a fault of the service, not of the submission.",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PassFacts:
    """Stages in their order, up to the first that did not pass.

    `failure` is one that the submission has no part in, and so fails the job.
    """

    runs: tuple[Run, ...]
    passed: bool
    failure: Failure | None = None


def judge_pass(of: SubmissionJob, outcome: JobOutcome) -> PassFacts:
    """Take from an outcome what a pass in this mode can give. What else was sent is left out."""
    submission, job = of.submission, of.job
    text = submission.source.text
    warning = "" if of.secret else warn_of_stream_use(submission.file_name, text)
    runs: list[Run] = []
    failure = None
    for mode in STAGES[Mode(submission.mode)]:
        record = outcome.runs.get(mode)
        if record is None:
            failure = outcome.failure or _NOTHING
            break
        runs.append(_judge_stage(of, job, mode, record, outcome, warning))
        if record.failure and record.failure.kind.fault is not Fault.SUBMISSION:
            failure = record.failure
        if not runs[-1].passed:
            break
    return PassFacts(
        runs=tuple(runs),
        passed=failure is None and all(run.passed for run in runs),
        failure=failure,
    )


def _judge_stage(
    of: SubmissionJob, job: Job, mode: Mode, record: RunRecord, outcome: JobOutcome, warning: str
) -> Run:
    submission = of.submission
    ran = record.run
    passed = record.failure is None and ran is not None and ran.success and ran.passed
    told = told_columns(record, record.failure, job)
    score = None
    if mode is Mode.LEADERBOARD and passed and ran is not None:
        try:
            score = score_of(submission.revision.definition.ranking_by, ran.result)
        except NoScore as problem:
            passed, message = False, f"The evaluator gave no score: {problem}."
            told |= {
                "failure_kind": NO_SCORE,
                "failure_message": message[:MESSAGE_CHARS],
                "run": _with_stderr(told["run"], message),
            }
    told["run"] = _with_stderr(told["run"], warning)
    return Run(
        submission=submission,
        job=job,
        leaderboard_id=submission.leaderboard_id,
        user_id=submission.user_id,
        gpu=submission.gpu,
        mode=mode,
        secret=of.secret,
        passed=passed,
        score=score,
        system=wire.encode(outcome.system),
        **told,
    )


def told_columns(record: RunRecord, failure: Failure | None, job: Job) -> dict[str, Any]:
    """What runs and captures keep alike of a record, and of the failure that it is kept with."""
    return {
        "started_at": _time(record.start, job.running_at or job.created_at),
        "finished_at": _time(record.end, timezone.now()),
        "run": wire.encode(record.run),
        "compilation": wire.encode(record.compilation),
        **told_failure(failure),
    }


def told_failure(failure: Failure | None) -> dict[str, str]:
    return {
        "failure_kind": str(failure.kind) if failure else "",
        "failure_message": failure.message[:MESSAGE_CHARS] if failure else "",
    }


def _with_stderr(run: dict[str, Any] | None, line: str) -> dict[str, Any] | None:
    """People look into stderr for what there is to say about a run."""
    if run is None or not line:
        return run
    return run | {"stderr": f"{run['stderr'].rstrip()}\n{line}".lstrip("\n")}


def _time(text: str, otherwise: datetime) -> datetime:
    """An aware time of the GPU side, or ours where it sent something else."""
    try:
        told = datetime.fromisoformat(text)
    except ValueError:
        return otherwise
    # Far from now, a time zone could carry it out of what a database can hold.
    return told if told.tzinfo is not None and 2000 < told.year < 9000 else otherwise


def lock_submission(of: SubmissionJob) -> Submission:
    """The submission as it is now, and as it stays until the transaction ends."""
    return Submission.objects.select_for_update(no_key=True).get(pk=of.submission_id)


def keep_stages(runs: Iterable[Run]) -> None:
    """Save runs of one job; harmless to repeat."""
    Run.objects.bulk_create(
        runs,
        update_conflicts=True,
        unique_fields=["job", "mode"],
        update_fields=[
            "passed",
            "score",
            "started_at",
            "finished_at",
            "run",
            "compilation",
            "system",
            "failure_kind",
            "failure_message",
        ],
    )
