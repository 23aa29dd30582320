"""The durable unit of GPU work, what happened to it, and the files that came back.

Nothing here knows leaderboards or people: `owner_key` and `actor_label` are text that the app
above gives. Rows are never deleted, so no key cascades.
"""

from __future__ import annotations

import uuid
from datetime import datetime, timedelta
from typing import Any

import uuid_utils.compat
from django.core.files.storage import Storage, storages
from django.db import models
from django.db.models import F, Q
from django.utils import timezone

from runners.states import ACTIVE, FINAL, IN_FLIGHT, JobStatus

# A job is delayed for less than this; one that seems to wait longer was queued by a clock that was
# ahead and has been set back.
DELAY_MAX = timedelta(minutes=15)


def uuid7() -> uuid.UUID:
    """A key that sorts by its time of making."""
    made: uuid.UUID = uuid_utils.compat.uuid7()
    return made


def reports_storage() -> Storage:
    """Where captures are kept; a function, so that migrations name no place."""
    return storages["reports"]


class JobQuerySet(models.QuerySet["Job"]):
    def active(self) -> JobQuerySet:
        return self.filter(status__in=ACTIVE)

    def in_flight(self) -> JobQuerySet:
        return self.filter(status__in=IN_FLIGHT)

    def queued(self) -> JobQuerySet:
        """In the order in which they are started."""
        return self.filter(status=JobStatus.QUEUED).order_by("queued_at", "pk")

    def due(self, now: datetime) -> JobQuerySet:
        return self.queued().filter(Q(not_before__lte=now) | Q(not_before__gt=now + DELAY_MAX))

    def abandoned(self, now: datetime) -> JobQuerySet:
        """In flight, but whoever held them did not renew the lease."""
        return self.in_flight().filter(lease_until__lt=now)


class Job(models.Model):
    """One run on one GPU. `status` is written by transitions.move alone."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    kind = models.CharField(max_length=32)
    gpu = models.CharField(max_length=64)
    runner = models.CharField(max_length=32)
    owner_key = models.CharField(max_length=64)
    status = models.CharField(max_length=16, choices=JobStatus, default=JobStatus.QUEUED)
    attempt = models.PositiveSmallIntegerField(default=1)
    external_id = models.CharField(max_length=200, blank=True)
    # What the runner says it does; progress for people, not a state.
    phase = models.CharField(max_length=200, blank=True)
    lease_owner = models.CharField(max_length=64, blank=True)
    lease_until = models.DateTimeField(null=True, blank=True)
    not_before = models.DateTimeField(default=timezone.now)
    created_at = models.DateTimeField(default=timezone.now)
    queued_at = models.DateTimeField(default=timezone.now)
    starting_at = models.DateTimeField(null=True, blank=True)
    running_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)
    failure_kind = models.CharField(max_length=64, blank=True)
    failure_message = models.TextField(blank=True)
    # The run at the provider is still to be ended (a cancelled or timed out job).
    stop_due = models.BooleanField(default=False)

    objects = JobQuerySet.as_manager()

    class Meta:
        constraints = [
            models.CheckConstraint(
                name="job_status_known", condition=Q(status__in=list(JobStatus.values))
            ),
            # A run that nobody can poll or end must not exist.
            models.CheckConstraint(
                name="job_running_has_external_id",
                condition=~Q(status__in=[JobStatus.RUNNING, JobStatus.COLLECTING])
                | ~Q(external_id=""),
            ),
            models.CheckConstraint(
                name="job_in_flight_has_lease",
                condition=~Q(status__in=sorted(IN_FLIGHT))
                | (~Q(lease_owner="") & Q(lease_until__isnull=False)),
            ),
            models.CheckConstraint(
                name="job_final_has_finished_at",
                condition=Q(status__in=sorted(FINAL), finished_at__isnull=False)
                | (~Q(status__in=sorted(FINAL)) & Q(finished_at__isnull=True)),
            ),
            models.CheckConstraint(
                name="job_failed_says_why",
                condition=~Q(status__in=[JobStatus.FAILED, JobStatus.TIMED_OUT])
                | ~Q(failure_kind=""),
            ),
            # Two rows with one run would each collect and end the other's.
            models.UniqueConstraint(
                name="job_external_id_once",
                fields=["runner", "external_id"],
                condition=~Q(external_id=""),
            ),
        ]
        indexes = [
            # claim.py and the queue positions: what waits, per GPU, in order.
            models.Index(
                F("gpu"),
                F("queued_at"),
                F("id"),
                name="job_queue",
                condition=Q(status=JobStatus.QUEUED),
            ),
            # The dispatcher's limits, leases and take-over read only these.
            models.Index(
                F("gpu"),
                F("owner_key"),
                name="job_in_flight",
                condition=Q(status__in=sorted(IN_FLIGHT)),
            ),
            models.Index(F("id"), name="job_stop_due", condition=Q(stop_due=True)),
            # claim.py: whose turn it is, by when each owner's last job on this GPU was started.
            models.Index(F("gpu"), F("owner_key"), F("starting_at").desc(), name="job_last_start"),
            # The admin's list, newest first, and its filters.
            models.Index(F("created_at").desc(), name="job_newest"),
            models.Index(F("status"), F("created_at").desc(), name="job_status_newest"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} job {self.pk} on {self.gpu}"

    @property
    def is_final(self) -> bool:
        return self.status in FINAL


class AppendOnlyError(TypeError):
    """The rows of this table are a record: they are added and never changed."""


class AppendOnlyQuerySet[M: models.Model](models.QuerySet[M]):
    """Refuses what would change or delete rows."""

    def update(self, **kwargs: Any) -> int:
        raise AppendOnlyError(f"{self.model.__name__} rows are never changed")

    def bulk_update(self, *args: Any, **kwargs: Any) -> int:
        raise AppendOnlyError(f"{self.model.__name__} rows are never changed")

    def delete(self) -> tuple[int, dict[str, int]]:
        raise AppendOnlyError(f"{self.model.__name__} rows are never deleted")


class AppendOnly(models.Model):
    """A table whose rows are added and never changed, through the ORM and so in the admin."""

    objects = AppendOnlyQuerySet.as_manager()

    class Meta:
        abstract = True

    def save(self, *args: Any, **kwargs: Any) -> None:
        if not self._state.adding:
            raise AppendOnlyError(f"{type(self).__name__} rows are never changed")
        super().save(*args, **kwargs)

    def delete(self, *args: Any, **kwargs: Any) -> tuple[int, dict[str, int]]:
        raise AppendOnlyError(f"{type(self).__name__} rows are never deleted")


class JobEvent(AppendOnly):
    """One change of a job's status, written in the transaction that made it."""

    job = models.ForeignKey(Job, on_delete=models.PROTECT, related_name="events")
    created_at = models.DateTimeField(default=timezone.now)
    from_status = models.CharField(max_length=16, choices=JobStatus, blank=True)
    to_status = models.CharField(max_length=16, choices=JobStatus)
    attempt = models.PositiveSmallIntegerField()
    # Who did it: a person as the app above calls them, or "dispatcher <id>".
    actor_label = models.CharField(max_length=200)
    reason = models.TextField(blank=True)

    class Meta:
        ordering = ["id"]

    def __str__(self) -> str:
        return f"{self.from_status or 'new'} to {self.to_status}"


class Artifact(models.Model):
    """A stored file of a job's attempt: written once, never replaced by other content."""

    job = models.ForeignKey(Job, on_delete=models.PROTECT, related_name="artifacts")
    attempt = models.PositiveSmallIntegerField()
    name = models.CharField(max_length=100)
    # Its key is job, attempt and name: artifacts.py.
    file = models.FileField(storage=reports_storage, max_length=300, unique=True)
    size = models.PositiveBigIntegerField()
    sha256 = models.CharField(max_length=64)
    content_type = models.CharField(max_length=100)
    created_at = models.DateTimeField(default=timezone.now)
    # The file was removed after its request was deleted; the row stays.
    purged_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                name="artifact_once_per_attempt", fields=["job", "attempt", "name"]
            )
        ]

    def __str__(self) -> str:
        return str(self.file.name)


class GpuPause(models.Model):
    """No job of this GPU type is started: its machines cannot do the work (FR-09)."""

    gpu = models.CharField(max_length=64)
    kind = models.CharField(max_length=64)
    reason = models.TextField()
    paused_at = models.DateTimeField(default=timezone.now)
    paused_by = models.CharField(max_length=200)
    resumed_at = models.DateTimeField(null=True, blank=True)
    resumed_by = models.CharField(max_length=200, blank=True)

    class Meta:
        verbose_name = "GPU pause"
        constraints = [
            models.UniqueConstraint(
                name="gpu_paused_once", fields=["gpu"], condition=Q(resumed_at__isnull=True)
            )
        ]

    def __str__(self) -> str:
        return f"pause of {self.gpu}"


class DispatcherHeartbeat(models.Model):
    """A dispatcher that is alive renews its row; one that ends in order deletes it."""

    owner = models.CharField(max_length=64, primary_key=True)
    started_at = models.DateTimeField(default=timezone.now)
    seen_at = models.DateTimeField()
    # Jobs that it carried when it was last seen.
    in_flight = models.PositiveIntegerField(default=0)

    def __str__(self) -> str:
        return f"dispatcher {self.owner}"


class DispatcherTurn(models.Model):
    """Work that one dispatcher at a time may do: dispatcher/turns.py."""

    name = models.CharField(max_length=64, primary_key=True)
    # Of whoever does it now; a random word for each time.
    token = models.CharField(max_length=32, blank=True)
    until = models.DateTimeField()

    def __str__(self) -> str:
        return self.name
