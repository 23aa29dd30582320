"""What running a submission gave: its jobs, and one row per stage."""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.utils import timezone

from leaderboards.models.people import PopcornUser
from leaderboards.models.submissions import Submission
from leaderboards.models.tasks import Leaderboard
from runners.models import Job


class SubmissionJob(models.Model):
    """A pass of a submission: the public one, or the secret one that follows a good public one."""

    submission = models.ForeignKey(Submission, on_delete=models.PROTECT, related_name="passes")
    job = models.OneToOneField(Job, on_delete=models.PROTECT, related_name="submission_pass")
    secret = models.BooleanField(default=False)

    class Meta:
        constraints = [
            models.UniqueConstraint(name="submission_pass_once", fields=["submission", "secret"])
        ]

    def __str__(self) -> str:
        return f"{'secret' if self.secret else 'public'} pass of submission {self.submission_id}"


class Run(models.Model):
    """One stage of one pass, as it ended: `test`, `benchmark`, `leaderboard` or `profile.N`."""

    submission = models.ForeignKey(Submission, on_delete=models.PROTECT, related_name="runs")
    job = models.ForeignKey(Job, on_delete=models.PROTECT, related_name="runs")
    # Copies of the submission's, so that a ranking is one indexed query.
    leaderboard = models.ForeignKey(Leaderboard, on_delete=models.PROTECT, related_name="+")
    user = models.ForeignKey(PopcornUser, on_delete=models.PROTECT, related_name="+")
    gpu = models.CharField(max_length=64)
    mode = models.CharField(max_length=32)
    secret = models.BooleanField(default=False)
    passed = models.BooleanField()
    # Seconds; only leaderboard stages that passed have one.
    score = models.FloatField(null=True, blank=True)
    started_at = models.DateTimeField(default=timezone.now)
    finished_at = models.DateTimeField(default=timezone.now)
    # RunResult, CompileResult and System as the GPU side sent them (wire-contract.md, 6.4).
    run = models.JSONField(null=True, blank=True)
    compilation = models.JSONField(null=True, blank=True)
    system = models.JSONField(default=dict)
    failure_kind = models.CharField(max_length=64, blank=True)
    failure_message = models.TextField(blank=True)

    class Meta:
        ordering = ["id"]
        constraints = [
            models.UniqueConstraint(name="run_once_per_job", fields=["job", "mode"]),
            models.CheckConstraint(
                name="run_scored_only_when_it_ranks",
                condition=Q(score__isnull=True) | Q(mode="leaderboard", passed=True),
            ),
        ]
        indexes = [
            # Rankings: each person's best public score of a leaderboard on a GPU.
            models.Index(
                fields=["leaderboard", "gpu", "user", "score", "id"],
                name="run_ranking",
                condition=Q(secret=False, score__isnull=False),
            ),
            # The secret runs that decide whether a public one ranks.
            models.Index(fields=["submission", "secret"], name="run_of_submission"),
        ]

    def __str__(self) -> str:
        return f"{self.mode} run of submission {self.submission_id}"
