"""What a client can find out before it sends anything (wire-contract.md, 4 and 12)."""

from __future__ import annotations

from typing import Any

from django.conf import settings

from leaderboards.models import Leaderboard
from leaderboards.runner_queue import show_queue
from leaderboards.task_definition import SUBMISSION_MARK, TaskDefinition
from runners.models import Job
from runners.pauses import paused_gpus
from runners.registry import find_gpu

# Sent for clients of the reference, whose leaderboards have a forum and a creator's number.
NO_CREATOR, NO_FORUM = 0, -1


def list_leaderboards() -> list[dict[str, Any]]:
    """All leaderboards as `GET /leaderboards` shows them, in one query.

    Closed ones are told of, without their task; nobody is told a secret seed or the text of a
    task's files, which are the evaluator and the reference.
    """
    boards = Leaderboard.objects.existing().select_related("current_revision").order_by("id")
    return [_shown(board) for board in boards]


def offered_gpus(board: Leaderboard) -> list[str]:
    """The GPUs of a leaderboard that this service has, as it calls them."""
    found = (find_gpu(settings.GPU_TYPES, name) for name in board.gpu_types)
    return [gpu.name for gpu in found if gpu]


def runner_queue(gpu_name: str) -> dict[str, Any]:
    """How busy a GPU type is, as clients show it; one that is not here is unavailable."""
    gpu = find_gpu(settings.GPU_TYPES, gpu_name)
    jobs = Job.objects.filter(gpu=gpu.name) if gpu else Job.objects.none()
    columns = {
        "queued_jobs": jobs.queued().order_by().count(),
        "running_jobs": jobs.in_flight().count(),
        "gpu_is_paused": gpu is not None and gpu.name in paused_gpus(),
    }
    return show_queue(gpu_name, columns)


def _shown(board: Leaderboard) -> dict[str, Any]:
    revision = board.current_revision
    is_open = board.visibility == Leaderboard.Visibility.PUBLIC
    return {
        "id": board.pk,
        "name": board.name,
        "creator_id": NO_CREATOR,
        "deadline": board.deadline.isoformat(),
        "description": board.description,
        "task": _shown_task(revision.definition) if revision and is_open else {},
        "gpu_types": offered_gpus(board),
        "forum_id": NO_FORUM,
        "visibility": board.visibility,
    }


def _shown_task(task: TaskDefinition) -> dict[str, Any]:
    """The keys of the reference; `files` has names, and no text but the mark."""
    config: dict[str, Any] = {"main": task.main}
    if task.lang == "cu":
        names = ("sources", "include_dirs", "defines", "compile_flags")
        config = {name: getattr(task, name) for name in names}
    return {
        "lang": task.lang,
        "files": {
            name: text if text == SUBMISSION_MARK else "" for name, text in task.files.items()
        },
        "config": config,
        "libraries": task.libraries,
        "tests": task.tests,
        "test_timeout": _seconds(task.test_timeout),
        "benchmarks": task.benchmarks,
        "benchmark_timeout": _seconds(task.benchmark_timeout),
        "ranked_timeout": _seconds(task.ranked_timeout),
        "ranking_by": task.ranking_by,
        "seed": task.seed,
        "multi_gpu": task.multi_gpu,
    }


def _seconds(limit: float) -> float:
    """A whole number as such, which is how a task.yml has it."""
    return int(limit) if limit.is_integer() else limit
