"""What people sent. Code is stored once, by its SHA-256."""

from __future__ import annotations

import hashlib

from django.db import models
from django.db.models import Q
from django.utils import timezone

from leaderboards.models.people import PopcornUser
from leaderboards.models.tasks import Leaderboard, TaskRevision
from runners.gpu.contract import Mode


class SubmissionSource(models.Model):
    """The bytes of a submission, as they came."""

    sha256 = models.CharField(primary_key=True, max_length=64)
    content = models.BinaryField()
    size = models.PositiveIntegerField()
    created_at = models.DateTimeField(default=timezone.now)
    # All submissions of this content were deleted: the content went, the digest stays.
    purged_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return self.sha256

    @property
    def text(self) -> str:
        return bytes(self.content).decode()

    @classmethod
    def keep(cls, content: bytes) -> SubmissionSource:
        """The row of this content, new or known, in the caller's transaction.

        It is locked against a purge of this very content.
        """
        source, made = cls.objects.select_for_update(no_key=True).get_or_create(
            sha256=hashlib.sha256(content).hexdigest(),
            defaults={"content": content, "size": len(content)},
        )
        if not made and source.purged_at is not None:
            source.content, source.purged_at = content, None
            source.save(update_fields=["content", "purged_at"])
        return source


class Submission(models.Model):
    """One upload for one leaderboard, GPU and mode. `id` is an integer on the wire."""

    class Verdict(models.TextChoices):
        HACKED = "hacked"

    id = models.BigAutoField(primary_key=True)
    user = models.ForeignKey(PopcornUser, on_delete=models.PROTECT, related_name="submissions")
    leaderboard = models.ForeignKey(
        Leaderboard, on_delete=models.PROTECT, related_name="submissions"
    )
    revision = models.ForeignKey(TaskRevision, on_delete=models.PROTECT, related_name="+")
    source = models.ForeignKey(
        SubmissionSource, on_delete=models.PROTECT, related_name="submissions"
    )
    file_name = models.CharField(max_length=255)
    mode = models.CharField(max_length=16, choices=[(mode.value, mode.value) for mode in Mode])
    gpu = models.CharField(max_length=64)
    created_at = models.DateTimeField(default=timezone.now)
    verdict = models.CharField(max_length=16, choices=Verdict, blank=True)
    deleted_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                name="submission_mode_known", condition=Q(mode__in=sorted(Mode))
            ),
            models.CheckConstraint(
                name="submission_verdict_known", condition=Q(verdict__in=["", "hacked"])
            ),
        ]
        indexes = [
            # The hourly limit per leaderboard.
            models.Index(fields=["user", "leaderboard", "-created_at"], name="submission_of_user"),
            # A person's own list, newest first.
            models.Index(
                fields=["user", "-id"],
                name="submission_own",
                condition=Q(deleted_at__isnull=True),
            ),
            models.Index(fields=["leaderboard", "-created_at"], name="submission_of_board"),
        ]

    def __str__(self) -> str:
        return f"submission {self.pk}"
