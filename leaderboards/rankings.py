"""Who is how fast: wire-contract.md, 14.2 and 14.3."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from django.conf import settings
from django.db.models import F, QuerySet, Window
from django.db.models.functions import Rank

from leaderboards.exceptions import UnknownGpu
from leaderboards.models import Leaderboard, Standing
from leaderboards.standings import qualifying_runs
from runners.registry import find_gpu


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


def ranked_runs(board: Leaderboard, gpu: str, *, limit: int, offset: int = 0) -> list[RankedRun]:
    """Everybody's best run, the fastest first; equal scores share a rank and the next is left out."""
    rows = (
        _standings(board, gpu)
        .annotate(rank=Window(Rank(), order_by=F("score").asc()))
        .order_by("score", "run_id")
        .values_list(
            "rank",
            "score",
            "run__submission_id",
            "run__submission__file_name",
            "run__submission__created_at",
            "user__user_id",
            "user__display_name",
            "user__username",
        )
    )
    return [RankedRun._make(row) for row in rows[offset : offset + limit]]


def count_ranked(board: Leaderboard, gpu: str, user_id: str | None = None) -> int:
    """How many people are ranked; for one person, how many of their runs would be."""
    if user_id is None:
        return _standings(board, gpu).count()
    # No database could be asked for a NUL, which no id has.
    person = user_id.replace("\0", "?")
    return qualifying_runs().filter(leaderboard=board, gpu=gpu, user__user_id=person).count()


def _standings(board: Leaderboard, gpu: str) -> QuerySet[Standing]:
    return board.standings.filter(gpu=gpu, run__isnull=False)


def find_gpu_of(board: Leaderboard, gpu_name: str) -> str:
    """The name under which runs on this GPU are kept. Raises UnknownGpu."""
    for name in board.gpu_types:
        if name.lower() == gpu_name.lower():
            gpu = find_gpu(settings.GPU_TYPES, name)
            return gpu.name if gpu else str(name)
    raise UnknownGpu(f"leaderboard {board.name!r} is not offered on {gpu_name[:64]!r}")
