"""How busy a GPU type is, as part of a query about something else (wire-contract.md, 5.1)."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.db.models import Count, Exists, Q, Subquery
from django.db.models.expressions import Combinable
from django.db.models.functions import Coalesce

from runners.models import GpuPause, Job
from runners.registry import find_gpu
from runners.states import IN_FLIGHT, JobStatus

PAUSED = "paused: its machines cannot do the work at present"


def queue_columns(gpu: Any) -> dict[str, Combinable]:
    """Annotations for a query about something on `gpu`, which is an OuterRef or a name."""
    jobs = Job.objects.filter(gpu=gpu).order_by().values("gpu")

    def count(condition: Q) -> Combinable:
        return Coalesce(Subquery(jobs.filter(condition).annotate(n=Count("pk")).values("n")), 0)

    return {
        "queued_jobs": count(Q(status=JobStatus.QUEUED)),
        "running_jobs": count(Q(status__in=sorted(IN_FLIGHT))),
        "gpu_is_paused": Exists(GpuPause.objects.filter(gpu=gpu, resumed_at=None)),
    }


def show_queue(gpu_name: str, columns: dict[str, Any]) -> dict[str, Any]:
    """The `runner_queue` object from the values of `queue_columns`."""
    gpu = find_gpu(settings.GPU_TYPES, gpu_name)
    if gpu is None:
        error: str | None = f"no runner serves {gpu_name[:64]!r} here"
    else:
        error = PAUSED if columns["gpu_is_paused"] else None
    return {
        "runner": gpu.runner if gpu else None,
        "gpu": gpu.name if gpu else gpu_name[:64],
        "queued_jobs": columns["queued_jobs"],
        "running_jobs": columns["running_jobs"],
        "available_runners": gpu.max_in_flight if gpu and not error else 0,
        "status": "unavailable" if error else "available",
        "error": error,
    }
