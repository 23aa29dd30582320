"""What a client can find out before it sends anything (wire-contract.md, 4 and 12)."""

from __future__ import annotations

from typing import Any

from django.conf import settings

from leaderboards.models import Leaderboard
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
    if gpu is None:
        return _queue(gpu_name, error=f"there is no GPU {gpu_name[:64]!r} here")
    jobs = Job.objects.filter(gpu=gpu.name)
    facts: dict[str, Any] = {
        "runner": gpu.runner,
        "queued_jobs": jobs.queued().order_by().count(),
        "running_jobs": jobs.in_flight().count(),
        "available_runners": gpu.max_in_flight,
    }
    if gpu.name in paused_gpus():
        return _queue(gpu.name, error="its machines cannot work at present", **facts)
    return _queue(gpu.name, **facts)


def unknown_queue(gpu_name: str) -> dict[str, Any]:
    """For when even the queue cannot be read: who asks for it should not fail for that."""
    return _queue(gpu_name, error="the queue cannot be read at present")


def _queue(gpu_name: str, *, error: str | None = None, **facts: Any) -> dict[str, Any]:
    unknown = dict.fromkeys(("queued_jobs", "running_jobs", "available_runners"))
    status = "unavailable" if error else "available"
    return {"runner": None, "gpu": gpu_name, **unknown, **facts, "status": status, "error": error}


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
