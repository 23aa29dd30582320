"""What the rows say about jobs just now, for any number of jobs in a fixed number of queries."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from uuid import UUID

from runners.models import Job
from runners.pauses import paused_gpus
from runners.states import FINAL, JobStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class JobNews:
    """A job as a waiting client sees it. `queue_position` counts from 1, and only while queued;
    it is the order of arrival, while claims go by turns (dispatcher/claim.py)."""

    status: JobStatus
    attempt: int
    gpu: str
    phase: str
    queue_position: int | None = None
    gpu_is_paused: bool = False

    @property
    def is_final(self) -> bool:
        return self.status in FINAL

    @property
    def message(self) -> str:
        """One readable sentence."""
        again = f" (attempt {self.attempt})" if self.attempt > 1 else ""
        if self.status == JobStatus.QUEUED and self.gpu_is_paused:
            return (
                f"{self.gpu} is paused, since its machines cannot do the work at present; the "
                f"request stays in the queue at position {self.queue_position}{again}"
            )
        doing = f": {self.phase}" if self.phase else ""
        # Claims serve people by turns, so that a later request of somebody else may come first.
        order = " by arrival; people take turns" if (self.queue_position or 1) > 1 else ""
        return {
            JobStatus.QUEUED: (
                f"waiting for {self.gpu}, position {self.queue_position} in the queue{order}"
            ),
            JobStatus.STARTING: f"starting on {self.gpu}",
            JobStatus.RUNNING: f"running on {self.gpu}{doing}",
            JobStatus.COLLECTING: f"collecting the results from {self.gpu}{doing}",
            JobStatus.SUCCEEDED: f"finished on {self.gpu}",
            JobStatus.FAILED: f"failed on {self.gpu}",
            JobStatus.TIMED_OUT: f"not finished in time on {self.gpu}",
            JobStatus.CANCELLED: "cancelled",
        }[self.status] + again


def read_news(job_ids: Collection[UUID]) -> dict[UUID, JobNews]:
    """One query, and two more while any of the jobs is queued."""
    fields = ("pk", "status", "attempt", "gpu", "phase")
    jobs = list(Job.objects.filter(pk__in=job_ids).values(*fields))
    queued_on = {job["gpu"] for job in jobs if job["status"] == JobStatus.QUEUED}
    positions = _queue_positions(queued_on) if queued_on else {}
    paused = paused_gpus() if queued_on else {}
    return {
        job["pk"]: JobNews(
            status=JobStatus(job["status"]),
            attempt=job["attempt"],
            gpu=job["gpu"],
            phase=job["phase"],
            queue_position=positions.get(job["pk"]),
            gpu_is_paused=job["gpu"] in paused,
        )
        for job in jobs
    }


def _queue_positions(gpus: Collection[str]) -> dict[UUID, int]:
    """The place of every queued job in the queue of its GPU by arrival, the first is 1."""
    ahead: Counter[str] = Counter()
    positions = {}
    for job_id, gpu in Job.objects.queued().filter(gpu__in=gpus).values_list("pk", "gpu"):
        ahead[gpu] += 1
        positions[job_id] = ahead[gpu]
    return positions
