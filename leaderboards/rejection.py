"""What a rejection by the KernelGuard pre-check means for a submission."""

from __future__ import annotations

from leaderboards.models import Submission
from runners.handlers import KERNELGUARD_REJECTED
from runners.models import Job


def note_rejection(job: Job, submission_id: int) -> None:
    """Call it in the transaction of the move: no poll sees the job ended without the verdict."""
    if job.failure_kind == KERNELGUARD_REJECTED:
        Submission.objects.filter(pk=submission_id).update(verdict=Submission.Verdict.HACKED)
