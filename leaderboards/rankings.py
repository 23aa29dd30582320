"""Who is how fast: wire-contract.md, 14.2 and 14.3."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from django.conf import settings
from django.db.models import Exists, F, OuterRef, QuerySet, Subquery, Window
from django.db.models.functions import Rank

from leaderboards.exceptions import UnknownGpu
from leaderboards.models import Leaderboard, PopcornUser, Run
from runners.gpu.contract import Mode
from runners.registry import find_gpu

PEOPLE_MAX = 2**31 - 1


class RankedRun(NamedTuple):
    """A place in a ranking; `score` in seconds."""

    rank: int
    score: float
    submission_id: int
    file_name: str
    submitted_at: datetime
    user_id: str
    display_name: str
    username: str


def qualifying_runs(board: Leaderboard, gpu: str) -> QuerySet[Run]:
    """Public scores of submissions that stand and whose secret pass was good on this GPU."""
    secret = Run.objects.filter(
        submission=OuterRef("submission"), secret=True, gpu=OuterRef("gpu")
    ).order_by()
    return Run.objects.filter(
        Exists(secret.filter(mode=Mode.LEADERBOARD, passed=True)),
        ~Exists(secret.filter(passed=False)),
        leaderboard=board,
        gpu=gpu,
        secret=False,
        score__isnull=False,
        submission__verdict="",
        submission__deleted_at__isnull=True,
    ).order_by()


def ranked_runs(board: Leaderboard, gpu: str, *, limit: int, offset: int = 0) -> list[RankedRun]:
    """Everybody's best run, the fastest first; equal scores share a rank and the next is left out.

    One query. The best of each person is looked up in the index `run_ranking`, so that its cost
    grows with people and not with submissions.
    """
    rows = (
        Run.objects.filter(pk__in=_best_runs(board, gpu))
        .annotate(rank=Window(Rank(), order_by=F("score").asc()))
        .order_by("rank", "pk")
        .values_list(
            "rank",
            "score",
            "submission_id",
            "submission__file_name",
            "submission__created_at",
            "user__user_id",
            "user__display_name",
            "user__username",
        )
    )
    return [RankedRun._make(row) for row in rows[offset : offset + limit]]


def count_ranked(board: Leaderboard, gpu: str, user_id: str | None = None) -> int:
    """How many people are ranked; for one person, how many of their runs would be."""
    qualifying = qualifying_runs(board, gpu)
    if user_id is None:
        return PopcornUser.objects.filter(Exists(qualifying.filter(user=OuterRef("pk")))).count()
    # No database could be asked for a NUL, which no id has.
    return qualifying.filter(user__user_id=user_id.replace("\0", "?")).count()


def _best_runs(board: Leaderboard, gpu: str) -> QuerySet[PopcornUser, int | None]:
    best = qualifying_runs(board, gpu).filter(user=OuterRef("pk")).order_by("score", "pk")
    people = PopcornUser.objects.annotate(best=Subquery(best.values("pk")[:1]))
    # The limit is none: without one, PostgreSQL looks for everybody's best twice.
    return people.values_list("best", flat=True)[:PEOPLE_MAX]


def find_gpu_of(board: Leaderboard, gpu_name: str) -> str:
    """The name under which runs on this GPU are kept. Raises UnknownGpu."""
    for name in board.gpu_types:
        if name.lower() == gpu_name.lower():
            gpu = find_gpu(settings.GPU_TYPES, name)
            return gpu.name if gpu else str(name)
    raise UnknownGpu(f"leaderboard {board.name!r} is not offered on {gpu_name[:64]!r}")
