"""The record of what was done, by whom: added to and never changed."""

from __future__ import annotations

from datetime import datetime

from django.db import models
from django.db.models import F
from django.utils import timezone

from leaderboards.models.people import PopcornUser
from runners.models import AppendOnly


class AuditEvent(AppendOnly):
    """One deed. Names its subject as text, so that it outlives what it names."""

    created_at = models.DateTimeField(default=timezone.now)
    verb = models.CharField(max_length=64)
    actor = models.ForeignKey(
        PopcornUser, null=True, blank=True, on_delete=models.PROTECT, related_name="+"
    )
    actor_label = models.CharField(max_length=250)
    subject_kind = models.CharField(max_length=32)
    subject_id = models.CharField(max_length=64)
    # Ties the rows of one HTTP request together.
    request_id = models.CharField(max_length=64, blank=True)
    address = models.GenericIPAddressField(null=True, blank=True)
    client_version = models.CharField(max_length=200, blank=True)
    data = models.JSONField(default=dict)

    class Meta:
        indexes = [
            models.Index(fields=["subject_kind", "subject_id"], name="audit_of_subject"),
            models.Index(fields=["actor", "-created_at"], name="audit_of_actor"),
            models.Index(fields=["-created_at"], name="audit_newest"),
        ]

    def __str__(self) -> str:
        return f"{self.verb} {self.subject_kind} {self.subject_id}"


class FloodRefusal(models.Model):
    """Requests refused for their rate: one row per identity and minute, however many they were."""

    # "user:<user_id>" or "address:<address>".
    identity = models.CharField(max_length=100)
    minute = models.DateTimeField()
    route = models.CharField(max_length=64)
    count = models.PositiveIntegerField(default=1)
    last_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                name="flood_refusal_once", fields=["identity", "minute", "route"]
            )
        ]

    def __str__(self) -> str:
        return f"{self.count} of {self.identity}"

    @classmethod
    def count_one(cls, identity: str, route: str, now: datetime) -> None:
        """Add one refused request to its minute."""
        cls.objects.update_or_create(
            identity=identity,
            minute=now.replace(second=0, microsecond=0),
            route=route,
            defaults={"count": F("count") + 1, "last_at": now},
            create_defaults={"last_at": now},
        )
