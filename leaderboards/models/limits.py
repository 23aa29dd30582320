"""What an operator allows: submissions per hour, and whether any are accepted at all."""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.utils import timezone

from leaderboards.models.tasks import Leaderboard


class ModeCategory(models.TextChoices):
    """Limits count by category: test, benchmark and profile share one (wire-contract.md, 13.4)."""

    TEST = "test"
    LEADERBOARD = "leaderboard"


class RateLimit(models.Model):
    """Submissions that one person may send to a leaderboard within an hour; none set: unlimited."""

    leaderboard = models.ForeignKey(
        Leaderboard, on_delete=models.PROTECT, related_name="rate_limits"
    )
    mode_category = models.CharField(max_length=16, choices=ModeCategory)
    max_submissions_per_hour = models.PositiveIntegerField()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                name="rate_limit_once", fields=["leaderboard", "mode_category"]
            ),
            models.CheckConstraint(
                name="rate_limit_category_known",
                condition=Q(mode_category__in=["test", "leaderboard"]),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.mode_category}: {self.max_submissions_per_hour} an hour"


class AcceptanceSwitch(models.Model):
    """Whether submissions are accepted: the newest row counts, and none means yes.

    Rows and not a variable, since a restart must not turn it back on.
    """

    accepts = models.BooleanField()
    changed_at = models.DateTimeField(default=timezone.now)
    changed_by = models.CharField(max_length=250)

    class Meta:
        ordering = ["-id"]
        verbose_name_plural = "acceptance switches"

    def __str__(self) -> str:
        return "accepting" if self.accepts else "not accepting"
