"""Who stands where in a competition."""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from leaderboards.models.people import PopcornUser
from leaderboards.models.runs import Run
from leaderboards.models.tasks import Leaderboard


class Standing(models.Model):
    """A person's best run on a leaderboard and GPU; without a run once none of theirs counts.

    It repeats what Run rows say, so that a ranking costs what it shows and not what was ever
    submitted. `leaderboards.standings` is its one writer.
    """

    leaderboard = models.ForeignKey(Leaderboard, on_delete=models.PROTECT, related_name="standings")
    gpu = models.CharField(max_length=64)
    user = models.ForeignKey(PopcornUser, on_delete=models.PROTECT, related_name="+")
    run = models.ForeignKey(Run, null=True, blank=True, on_delete=models.PROTECT, related_name="+")
    # Seconds; the run's.
    score = models.FloatField(null=True, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(name="standing_once", fields=["leaderboard", "gpu", "user"]),
            models.CheckConstraint(
                name="standing_score_is_of_a_run",
                condition=Q(run__isnull=True, score__isnull=True)
                | Q(run__isnull=False, score__isnull=False),
            ),
        ]
        indexes = [
            models.Index(
                fields=["leaderboard", "gpu", "score", "run"],
                name="standing_order",
                condition=Q(run__isnull=False),
            )
        ]

    def __str__(self) -> str:
        return f"standing of {self.user_id} on {self.leaderboard_id} and {self.gpu}"
