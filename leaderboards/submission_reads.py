"""Submissions as their owners see them, in a number of queries that does not grow."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import (
    BinaryField,
    Case,
    Exists,
    F,
    FilteredRelation,
    OuterRef,
    Q,
    QuerySet,
    Subquery,
    When,
)
from django.db.models.functions import Coalesce

from leaderboards.models import PopcornUser, Run, Submission
from leaderboards.progress import PassState, Progress, is_done, progress_of
from leaderboards.runner_queue import queue_columns, show_queue
from runners.gpu.contract import Mode
from runners.states import JobStatus

_PASSES = {
    "public": FilteredRelation("passes", condition=Q(passes__secret=False)),
    "hidden": FilteredRelation("passes", condition=Q(passes__secret=True)),
}
_STAGE_FIELDS = (
    "mode",
    "secret",
    "passed",
    "gpu",
    "score",
    "started_at",
    "finished_at",
    "run",
    "compilation",
    "system",
    "failure_message",
)
_OWN_FIELDS = (
    "id",
    "leaderboard_id",
    "leaderboard__name",
    "file_name",
    "user__user_id",
    "created_at",
    "mode",
    "gpu",
    "verdict",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class StageRow:
    """A Run, without the rows that it belongs to."""

    mode: str
    secret: bool
    passed: bool
    gpu: str
    score: float | None
    started_at: datetime
    finished_at: datetime
    run: dict[str, Any] | None
    compilation: dict[str, Any] | None
    system: dict[str, Any]
    failure_message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmissionRow:
    """A submission with everything that is told of it."""

    id: int
    leaderboard_id: int
    leaderboard_name: str
    file_name: str
    user_id: str
    created_at: datetime
    mode: str
    gpu: str
    code: str
    stages: tuple[StageRow, ...]
    progress: Progress
    runner_queue: dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedSubmission:
    """`ranked` holds GPU and score of the stages that a list shows."""

    id: int
    leaderboard_name: str
    file_name: str
    created_at: datetime
    done: bool
    ranked: tuple[tuple[str, float | None], ...]


def standing_submissions(user: PopcornUser) -> QuerySet[Submission]:
    """What is not theirs, or was deleted, is not there for a person."""
    return Submission.objects.filter(user=user, deleted_at__isnull=True)


def read_submission(among: QuerySet[Submission], submission_id: int) -> SubmissionRow | None:
    """One query, since clients poll it: a row for each stage, the code in the first of them only."""
    first = Run.objects.filter(submission=OuterRef("pk")).order_by("pk").values("pk")[:1]
    rows = list(
        among.filter(pk=submission_id)
        .annotate(**_PASSES, **queue_columns(OuterRef("gpu")), first_run=Subquery(first))
        .annotate(
            code=Case(
                When(Q(runs__isnull=True) | Q(runs__pk=F("first_run")), then=F("source__content")),
                output_field=BinaryField(null=True),
            ),
            public_heard_at=_heard_at("public"),
            hidden_heard_at=_heard_at("hidden"),
        )
        .order_by("runs__pk")
        .values(
            *_OWN_FIELDS,
            *(f"{name}__job__{field}" for name in _PASSES for field in _JOB_FIELDS),
            *(f"{name}_heard_at" for name in _PASSES),
            *(f"runs__{field}" for field in _STAGE_FIELDS),
            *("code", "queued_jobs", "running_jobs", "gpu_is_paused"),
        )
    )
    return _submission(rows) if rows else None


_JOB_FIELDS = ("status", "failure_kind", "failure_message")


def _heard_at(relation: str) -> Coalesce:
    times = ("finished_at", "running_at", "starting_at", "queued_at")
    return Coalesce(*(f"{relation}__job__{name}" for name in times))


def _submission(rows: list[dict[str, Any]]) -> SubmissionRow:
    own = rows[0]
    stages = tuple(
        StageRow(**{field: row[f"runs__{field}"] for field in _STAGE_FIELDS})
        for row in rows
        if row["runs__mode"] is not None
    )
    public, hidden = _pass_state(own, "public"), _pass_state(own, "hidden")
    assert public is not None
    progress = progress_of(
        submission_id=own["id"],
        mode=own["mode"],
        gpu=own["gpu"],
        verdict=own["verdict"],
        public=public,
        secret=hidden,
        stages=stages,
    )
    return SubmissionRow(
        id=own["id"],
        leaderboard_id=own["leaderboard_id"],
        leaderboard_name=own["leaderboard__name"],
        file_name=own["file_name"],
        user_id=own["user__user_id"],
        created_at=own["created_at"],
        mode=own["mode"],
        gpu=own["gpu"],
        code=bytes(own["code"]).decode(),
        stages=stages,
        progress=progress,
        runner_queue=show_queue(own["gpu"], own),
    )


def _pass_state(row: dict[str, Any], relation: str) -> PassState | None:
    if row[f"{relation}__job__status"] is None:
        return None
    return PassState(
        status=JobStatus(row[f"{relation}__job__status"]),
        failure_kind=row[f"{relation}__job__failure_kind"],
        failure_message=row[f"{relation}__job__failure_message"],
        heard_at=row[f"{relation}_heard_at"],
    )


def list_submissions(
    among: QuerySet[Submission], *, leaderboard: str | None, limit: int, offset: int
) -> list[ListedSubmission]:
    """Newest first; two queries. An unknown leaderboard has no submissions."""
    if leaderboard is not None:
        # No database could be asked for a NUL, which no name has.
        among = among.filter(leaderboard__name=leaderboard.lower().replace("\0", "?"))
    page = list(
        among.annotate(**_PASSES)
        .order_by("-id")
        .values(*_OWN_FIELDS, "public__job__status", "hidden__job__status")[offset : offset + limit]
    )
    ranked = _ranked_stages([row["id"] for row in page])
    return [
        ListedSubmission(
            id=row["id"],
            leaderboard_name=row["leaderboard__name"],
            file_name=row["file_name"],
            created_at=row["created_at"],
            done=is_done(row["verdict"], row["public__job__status"], row["hidden__job__status"]),
            ranked=tuple(ranked[row["id"]]),
        )
        for row in page
    ]


def _ranked_stages(submission_ids: list[int]) -> dict[int, list[tuple[str, float | None]]]:
    """Public stages that passed, of submissions whose secret leaderboard stage passed as well."""
    validated = Run.objects.filter(
        submission=OuterRef("submission"),
        gpu=OuterRef("gpu"),
        secret=True,
        mode=Mode.LEADERBOARD,
        passed=True,
    )
    shown = Run.objects.filter(
        Exists(validated), submission__in=submission_ids, secret=False, passed=True
    )
    found = defaultdict(list)
    for submission, gpu, score in shown.order_by("pk").values_list("submission", "gpu", "score"):
        found[submission].append((gpu, score))
    return found
