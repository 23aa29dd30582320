"""GET /metrics for Prometheus: read from the rows at each scrape, so that every process says the same.

Only `streams_open` is of this machine's web processes alone. What is counted over time is counted
over the last hour: cost does not grow with the number of past requests.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db.models import Avg, Count, DurationField, ExpressionWrapper, F, Max, QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.utils.crypto import constant_time_compare
from django.views.decorators.http import require_safe
from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from prometheus_client.registry import Collector

from kernelbot_site.errors import not_found
from kernelbot_site.health import last_heartbeat
from kernelbot_site.open_streams import count_streams
from profiling.models import Capture
from runners.models import Job
from runners.pauses import paused_gpus
from runners.states import ACTIVE, JobStatus

HOUR = timedelta(hours=1)


@require_safe
def metrics(request: HttpRequest) -> HttpResponse:
    """For whoever has METRICS_TOKEN; for others this address does not exist."""
    sent = request.headers.get("Authorization", "").encode("latin-1", "replace")
    token: str = settings.METRICS_TOKEN
    if not token or not constant_time_compare(sent, f"Bearer {token}".encode()):
        return not_found(request, Exception())
    registry = CollectorRegistry()
    registry.register(FromRows())
    return HttpResponse(generate_latest(registry), content_type=CONTENT_TYPE_PLAIN_0_0_4)


class FromRows(Collector):
    def describe(self) -> list[GaugeMetricFamily]:
        """Nothing: else registering would collect, to learn the names."""
        return []

    def collect(self) -> Iterator[GaugeMetricFamily]:
        yield from _queue()
        yield from _finished()
        yield _gauge(
            "kernelbot_capture_failures_last_hour",
            "Captures that failed, by kind and by whose fault it was",
            ["kind", "fault"],
            _count(
                Capture.objects.filter(
                    # The index by which few rows are read.
                    request__created_at__gt=_oldest(),
                    finished_at__gt=timezone.now() - HOUR,
                    status=Capture.Status.FAILED,
                ),
                "failure_kind",
                "failure_fault",
            ),
        )
        yield GaugeMetricFamily(
            "kernelbot_streams_open", "Event streams open on this machine", value=count_streams()
        )
        if seen := last_heartbeat():
            yield GaugeMetricFamily(
                "kernelbot_dispatcher_heartbeat_age_seconds",
                "Since any dispatcher was last alive; absent when none is known",
                value=max(0.0, (timezone.now() - seen).total_seconds()),
            )


def _queue() -> Iterator[GaugeMetricFamily]:
    now = timezone.now()
    depth = {(gpu,): 0 for gpu in settings.GPU_TYPES}
    yield _gauge(
        "kernelbot_queue_depth",
        "Jobs that wait for a GPU",
        ["gpu"],
        depth | _count(Job.objects.filter(status=JobStatus.QUEUED), "gpu"),
    )
    active = Job.objects.filter(status__in=sorted(ACTIVE))
    yield _gauge(
        "kernelbot_jobs_active",
        "Jobs that are not finished",
        ["gpu", "status"],
        _count(active, "gpu", "status"),
    )
    oldest = Job.objects.queued().values_list("queued_at", flat=True).first()
    yield GaugeMetricFamily(
        "kernelbot_queue_oldest_seconds",
        "How long the first of all queued jobs has waited",
        value=(now - oldest).total_seconds() if oldest else 0,
    )
    paused = paused_gpus()
    yield _gauge(
        "kernelbot_gpu_paused",
        "1 while no job of this GPU type is started",
        ["gpu"],
        {(gpu,): int(gpu in paused) for gpu in settings.GPU_TYPES},
    )


def _finished() -> Iterator[GaugeMetricFamily]:
    jobs = Job.objects.filter(
        created_at__gt=_oldest(), finished_at__gt=timezone.now() - HOUR
    ).order_by()
    yield _gauge(
        "kernelbot_jobs_finished_last_hour",
        "Jobs that ended, by how",
        ["gpu", "status", "failure_kind"],
        _count(jobs, "gpu", "status", "failure_kind"),
    )
    phases = {
        "queued": ("starting_at", "queued_at"),
        "starting": ("running_at", "starting_at"),
        "running": ("finished_at", "running_at"),
    }
    mean: dict[tuple[str, ...], float] = {}
    longest: dict[tuple[str, ...], float] = {}
    for phase, (until, since) in phases.items():
        taken = ExpressionWrapper(F(until) - F(since), output_field=DurationField())
        by_gpu = jobs.values("gpu").annotate(mean=Avg(taken), longest=Max(taken))
        for row in by_gpu.filter(longest__isnull=False):
            mean[row["gpu"], phase] = row["mean"].total_seconds()
            longest[row["gpu"], phase] = row["longest"].total_seconds()
    about = "of a phase, among jobs that ended in the last hour"
    labels = ["gpu", "phase"]
    yield _gauge("kernelbot_phase_mean_seconds", f"Mean {about}", labels, mean)
    yield _gauge("kernelbot_phase_longest_seconds", f"Maximum {about}", labels, longest)


def _oldest() -> Any:
    """No job that ended in the last hour was made before this; the index on created_at ends it."""
    longest = settings.QUEUE_LIMIT_S + settings.MAX_ATTEMPTS * settings.RUN_WALL_S
    return timezone.now() - HOUR - timedelta(seconds=longest)


def _count(rows: QuerySet[Any], *by: str) -> dict[tuple[str, ...], float]:
    groups = rows.order_by().values_list(*by).annotate(n=Count("pk"))
    return {tuple(labels): n for *labels, n in groups}


def _gauge(
    name: str, about: str, labels: list[str], values: dict[tuple[str, ...], float]
) -> GaugeMetricFamily:
    family = GaugeMetricFamily(name, about, labels=labels)
    for of_labels, value in sorted(values.items()):
        family.add_metric(of_labels, value)
    return family
