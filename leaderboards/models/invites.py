"""Codes that open closed leaderboards."""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.utils import timezone

from leaderboards.models.people import PopcornUser
from leaderboards.models.tasks import Leaderboard


class InviteQuerySet(models.QuerySet["Invite"]):
    def standing(self) -> InviteQuerySet:
        return self.filter(revoked_at__isnull=True)


class Invite(models.Model):
    """A code for one person; operators can list codes, so they are kept in clear."""

    code = models.CharField(max_length=64, unique=True)
    leaderboards = models.ManyToManyField(Leaderboard, related_name="invites")
    created_at = models.DateTimeField(default=timezone.now)
    claimed_by = models.ForeignKey(
        PopcornUser, null=True, blank=True, on_delete=models.PROTECT, related_name="invites"
    )
    claimed_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)

    objects = InviteQuerySet.as_manager()

    class Meta:
        constraints = [
            models.CheckConstraint(
                name="invite_claimed_by_somebody",
                condition=Q(claimed_by__isnull=True, claimed_at__isnull=True)
                | Q(claimed_by__isnull=False, claimed_at__isnull=False),
            )
        ]

    def __str__(self) -> str:
        return f"invite {self.code[:4]}…"
