"""The closed list of what the audit trail says of profiles and of the GPUs that make them."""

from __future__ import annotations

from django.db import models

from runners.models import JobEvent
from runners.states import JobStatus


class Verb(models.TextChoices):
    # What somebody asked for.
    ACCEPTED = "profile.accepted"
    REFUSED = "profile.refused"
    CANCEL_ASKED = "profile.cancel_asked"
    RERUN_ASKED = "profile.rerun_asked"
    REVIEWED = "profile.reviewed"
    REJECTED = "profile.rejected"
    REREAD = "profile.reread"
    DOWNLOADED = "profile.downloaded"
    PRUNED = "profile.pruned"
    GPU_RESUMED = "gpu.resumed"
    # What became of it: one per move of the job.
    STARTING = "profile.starting"
    STARTED = "profile.started"
    REQUEUED = "profile.requeued"
    COLLECTING = "profile.collecting"
    SUCCEEDED = "profile.succeeded"
    FAILED = "profile.failed"
    TIMED_OUT = "profile.timed_out"
    CANCELLED = "profile.cancelled"


_OF_MOVE = {
    JobStatus.QUEUED: Verb.REQUEUED,
    JobStatus.STARTING: Verb.STARTING,
    JobStatus.RUNNING: Verb.STARTED,
    JobStatus.COLLECTING: Verb.COLLECTING,
    JobStatus.SUCCEEDED: Verb.SUCCEEDED,
    JobStatus.FAILED: Verb.FAILED,
    JobStatus.TIMED_OUT: Verb.TIMED_OUT,
    JobStatus.CANCELLED: Verb.CANCELLED,
}


def for_move(event: JobEvent) -> Verb:
    """How the audit trail calls a change of the job's status."""
    return _OF_MOVE[JobStatus(event.to_status)]
