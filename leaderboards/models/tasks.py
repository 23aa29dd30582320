"""Leaderboards, and every version of the task that each of them ever had."""

from __future__ import annotations

import secrets

from django.core.validators import RegexValidator
from django.db import models
from django.db.models import Q
from django.utils import timezone
from django.utils.functional import cached_property

from leaderboards.models.people import PopcornUser
from leaderboards.task_definition import MAX_TASK_BYTES, TaskDefinition
from runners.gpu import wire
from runners.models import AppendOnly

# First segments of paths that the CLI or this service owns.
RESERVED_NAMES = frozenset(
    [
        "profile",
        "submission",
        "submissions",
        "admin",
        "user",
        "auth",
        "api",
        "operators",
        "jobs",
        "gpus",
        "leaderboards",
        "health",
        "ready",
        "metrics",
        "docs",
        "static",
        "activate",
        "runner_queue",
        "submission_count",
    ]
)
name_form = RegexValidator(r"^[a-z0-9_-]{1,64}\Z", "use lower-case letters, digits, _ and - only")


def new_secret_seed() -> int:
    return secrets.randbelow(10_000) * 10_000 + secrets.randbelow(10_000) + 1


class LeaderboardQuerySet(models.QuerySet["Leaderboard"]):
    def existing(self) -> LeaderboardQuerySet:
        return self.filter(deleted_at__isnull=True)


class Leaderboard(models.Model):
    """A competition's problem: what is run is its current task revision."""

    class Visibility(models.TextChoices):
        PUBLIC = "public"
        CLOSED = "closed"

    name = models.CharField(max_length=64, validators=[name_form])
    description = models.TextField(blank=True)
    deadline = models.DateTimeField()
    visibility = models.CharField(max_length=8, choices=Visibility, default=Visibility.PUBLIC)
    # Names of GPU types, in the order in which they are offered.
    gpu_types = models.JSONField(default=list)
    creator = models.ForeignKey(
        PopcornUser, null=True, blank=True, on_delete=models.PROTECT, related_name="+"
    )
    # Never sent to anybody.
    secret_seed = models.BigIntegerField(default=new_secret_seed)
    current_revision = models.ForeignKey(
        "TaskRevision", null=True, blank=True, on_delete=models.PROTECT, related_name="+"
    )
    created_at = models.DateTimeField(default=timezone.now)
    deleted_at = models.DateTimeField(null=True, blank=True)

    objects = LeaderboardQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                name="leaderboard_name_once",
                fields=["name"],
                condition=Q(deleted_at__isnull=True),
            ),
            models.CheckConstraint(
                name="leaderboard_name_form", condition=Q(name__regex=r"\A[a-z0-9_-]{1,64}\Z")
            ),
            models.CheckConstraint(
                name="leaderboard_name_free", condition=~Q(name__in=sorted(RESERVED_NAMES))
            ),
            models.CheckConstraint(
                name="leaderboard_visibility_known",
                condition=Q(visibility__in=["public", "closed"]),
            ),
        ]

    def __str__(self) -> str:
        return self.name


class TaskRevision(AppendOnly):
    """A task as it was at one time: never changed, so that an old capture shows what it ran.

    Adding the same definition twice gives the first row again: `leaderboards.actions`.
    """

    leaderboard = models.ForeignKey(Leaderboard, on_delete=models.PROTECT, related_name="revisions")
    # JSON text: a jsonb column would reorder the keys, and case lines follow their order.
    definition_json = models.TextField()
    sha256 = models.CharField(max_length=64)
    # Where the definition was first read; empty when it came from no repository.
    repository = models.CharField(max_length=500, blank=True)
    commit = models.CharField(max_length=64, blank=True)
    directory = models.CharField(max_length=300, blank=True)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [
            models.UniqueConstraint(name="task_revision_once", fields=["leaderboard", "sha256"])
        ]

    def __str__(self) -> str:
        return f"{self.sha256[:12]}" + (f" (commit {self.commit[:12]})" if self.commit else "")

    @cached_property
    def definition(self) -> TaskDefinition:
        """Raises WireError when the row was not written by `add`."""
        return wire.loads(TaskDefinition, self.definition_json.encode(), max_bytes=MAX_TASK_BYTES)
