"""How the stream of a test, benchmark or leaderboard submission ends (wire-contract.md, 6.4, 6.6)."""

from __future__ import annotations

import json
from typing import Any

from leaderboards.models import Submission, SubmissionJob
from leaderboards.stream_use import warn_of_stream_use
from leaderboards.submission_reads import StageRow, SubmissionRow, read_submission
from profiling.streaming.endings import Ending, is_theirs
from profiling.streaming.news import read_news
from profiling.wire_result import NO_RUN, NO_SYSTEM, WireResult
from runners.models import Job
from runners.states import JobStatus

_COUNTS = ("test-count", "benchmark-count")


def read_submission_ending(submission_id: int) -> Ending:
    """A fixed number of queries. A secret pass that is still to come follows first."""
    passes = SubmissionJob.objects.filter(submission=submission_id)
    latest = passes.select_related("job").order_by("secret").last()
    row = read_submission(Submission.objects.all(), submission_id)
    assert latest is not None
    assert row is not None
    job = latest.job
    if not job.is_final:
        return Ending(follows=(job.pk, read_news([job.pk])[job.pk]))
    if job.status != JobStatus.SUCCEEDED:
        return Ending(error=_error(job, row))
    return Ending(messages=_messages(row), result=_result(row))


def _error(job: Job, row: SubmissionRow) -> dict[str, Any]:
    kind = job.failure_kind or job.status
    status_code = {JobStatus.CANCELLED: 409, JobStatus.TIMED_OUT: 504}.get(
        JobStatus(job.status), 400 if is_theirs(kind) else 503
    )
    return {"detail": row.progress.error, "status_code": status_code, "code": kind}


def _messages(row: SubmissionRow) -> tuple[str, ...]:
    said = (warn_of_stream_use(row.file_name, row.code), row.progress.error)
    return tuple(text for text in said if text)


def _result(row: SubmissionRow) -> WireResult:
    """One item per pass; of the secret one only whether its stages passed."""
    passes = [
        (secret, stages)
        for secret in (False, True)
        if (stages := [stage for stage in row.stages if stage.secret == secret])
    ]
    document = {
        "status": "success",
        "results": [_full_result(secret, stages) for secret, stages in passes],
        "reports": [_report(row, secret, stages) for secret, stages in passes],
    }
    return WireResult(parts=(json.dumps(document, allow_nan=False),), messages=())


def _full_result(secret: bool, stages: list[StageRow]) -> dict[str, Any]:
    show = _redacted if secret else _eval_result
    return {
        "success": True,
        "error": "",
        "system": NO_SYSTEM if secret else NO_SYSTEM | stages[0].system,
        "runs": {stage.mode: show(stage) for stage in stages},
        "cpu_compile": None,
        "profile_metadata": None,
    }


def _eval_result(stage: StageRow) -> dict[str, Any]:
    run = stage.run
    if run is None and stage.compilation is None:
        run = NO_RUN | {"stderr": stage.failure_message}
    return _times(stage) | {
        "compilation": stage.compilation,
        "run": run and run | {"result": _with_integers(run["result"])},
    }


def _redacted(stage: StageRow) -> dict[str, Any]:
    run = NO_RUN | {"success": stage.passed, "passed": stage.passed, "exit_code": 0}
    return _times(stage) | {"compilation": None, "run": run}


def _times(stage: StageRow) -> dict[str, Any]:
    return {
        "start": stage.started_at.isoformat(),
        "end": stage.finished_at.isoformat(),
        "profile": None,
    }


def _with_integers(result: dict[str, str]) -> dict[str, Any]:
    """Counts as numbers: as text, the CLI would show nothing of what they count."""
    counts = {name: result[name] for name in _COUNTS if name in result}
    return result | {
        name: int(text)
        for name, text in counts.items()
        if text.isascii() and text.isdecimal() and len(text) < 10
    }


def _report(row: SubmissionRow, secret: bool, stages: list[StageRow]) -> str:
    """Markdown for `reports`."""
    scope = "secret" if secret else "public"
    lines = [f"# {row.leaderboard_name} on {row.gpu}: {scope} pass of submission {row.id}", ""]
    for stage in stages:
        score = "" if stage.score is None else f", score {stage.score:g} s"
        lines.append(f"- {stage.mode}: {'passed' if stage.passed else 'not passed'}{score}")
        if stage.failure_message and not secret:
            lines.append(f"  {stage.failure_message}")
    lines += ["", *(() if secret else _messages(row))]
    return "\n".join(lines).rstrip() + "\n"
