"""Submissions, rankings and their parts in the exact shapes that popcorn-cli reads."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Any

from leaderboards.models import Leaderboard
from leaderboards.rankings import RankedRun
from leaderboards.submission_reads import ListedSubmission, StageRow, SubmissionRow
from runners.gpu.contract import Mode

# Greater integers are not read back exactly by every JSON reader.
JSON_SAFE_MAX = 2**53 - 1
# Stages whose results their owner sees (wire-contract.md, 5.2).
SHOWN = frozenset({Mode.TEST, Mode.BENCHMARK})


def show_submission(row: SubmissionRow) -> dict[str, Any]:
    """GET /user/submissions/{id}: wire-contract.md, 5.2."""
    progress = row.progress
    return {
        "id": row.id,
        "leaderboard_id": row.leaderboard_id,
        "leaderboard_name": row.leaderboard_name,
        "file_name": row.file_name,
        "user_id": row.user_id,
        "submission_time": wire_time(row.created_at),
        "done": progress.done,
        "code": row.code,
        "runs": [_show_stage(stage) for stage in row.stages],
        "job": {
            "status": progress.status,
            "error": progress.error,
            "last_heartbeat": wire_time(progress.heard_at) if progress.heard_at else None,
        },
        "runner_queue": row.runner_queue,
    }


def _show_stage(stage: StageRow) -> dict[str, Any]:
    """Secret stages are listed, and nothing else is told of them."""
    shown: dict[str, Any] = {
        "start_time": wire_time(stage.started_at),
        "end_time": wire_time(stage.finished_at),
        "mode": stage.mode,
        "secret": stage.secret,
        "runner": stage.gpu,
        "score": wire_score(stage.score),
        "passed": stage.passed,
    }
    if not stage.secret and stage.mode in SHOWN:
        shown["result"] = (stage.run or {}).get("result", {})
        shown["diagnostics"] = _diagnostics(stage)
    return shown


def _diagnostics(stage: StageRow) -> dict[str, Any]:
    shown: dict[str, Any] = {}
    if stage.run is not None:
        names = ("stdout", "stderr", "success", "exit_code", "duration")
        shown = {name: stage.run[name] for name in names}
    elif stage.compilation is None:
        shown = {"stdout": "", "stderr": stage.failure_message, "success": False}
    if stage.compilation is not None:
        shown["compilation"] = stage.compilation
    return shown


def show_listed(row: ListedSubmission) -> dict[str, Any]:
    """An entry of GET /user/submissions: wire-contract.md, 7."""
    return {
        "id": row.id,
        "leaderboard_name": row.leaderboard_name,
        "file_name": ascii_only(row.file_name),
        "submission_time": wire_time(row.created_at),
        "done": row.done,
        "runs": [{"gpu_type": gpu, "score": wire_score(score)} for gpu, score in row.ranked],
    }


def show_ranked(ranked: RankedRun, board: Leaderboard, gpu: str) -> dict[str, Any]:
    """An entry of GET /submissions/{leaderboard}/{gpu}: wire-contract.md, 14.3."""
    return {
        "submission_id": ranked.submission_id,
        "rank": ranked.rank,
        "submission_name": ranked.file_name,
        "submission_time": wire_time(ranked.submitted_at),
        "submission_score": ranked.score,
        "leaderboard_name": board.name,
        "user_id": wire_user_id(ranked.user_id),
        "user_name": ranked.display_name or ranked.username,
        "gpu_type": gpu,
    }


def wire_user_id(user_id: str) -> int | str:
    """A number where it has always been one, and text where a number would not arrive.

    The reference server sends integers. Ids that are none, or too large for a double, would break
    its call or be read as another person's; they stay text.
    """
    if user_id.isascii() and user_id.isdecimal() and len(user_id) <= 16:
        number = int(user_id)
        if number <= JSON_SAFE_MAX and str(number) == user_id:
            return number
    return user_id


def wire_time(moment: datetime) -> str:
    """ISO 8601 in UTC, with Z."""
    return moment.isoformat().replace("+00:00", "Z")


def wire_score(score: float | None) -> str | None:
    """Seconds as a plain decimal: `0.0000410119`."""
    return None if score is None else format(Decimal(repr(score)), "f")


def ascii_only(text: str) -> str:
    """The client's list cuts texts by bytes, and crashes inside a character (1.5)."""
    return text.encode("ascii", "replace").decode("ascii")
