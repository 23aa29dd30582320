"""The closed lists of what the audit trail says of people, leaderboards and submissions."""

from __future__ import annotations

from django.db import models

from runners.models import JobEvent
from runners.states import JobStatus


class Verb(models.TextChoices):
    LEADERBOARD_CREATED = "leaderboard.created"
    LEADERBOARD_CHANGED = "leaderboard.changed"
    LEADERBOARD_DELETED = "leaderboard.deleted"
    TASK_REVISED = "leaderboard.task_revised"
    INVITES_CREATED = "leaderboard.invites_created"
    INVITE_CLAIMED = "invite.claimed"
    INVITE_REVOKED = "invite.revoked"
    RATE_LIMIT_SET = "leaderboard.rate_limit_set"
    RATE_LIMIT_REMOVED = "leaderboard.rate_limit_removed"
    ACCEPTANCE_SWITCHED = "service.acceptance_switched"
    USER_REGISTERED = "user.registered"
    USER_CHANGED = "user.changed"
    USER_SIGNED_IN = "user.signed_in"
    USER_BANNED = "user.banned"
    USER_UNBANNED = "user.unbanned"
    CLIENT_ID_ISSUED = "user.client_id_issued"
    CLIENT_ID_ACTIVATED = "user.client_id_activated"
    CLIENT_ID_REVOKED = "user.client_id_revoked"


class SubmissionVerb(models.TextChoices):
    # What somebody asked for.
    ACCEPTED = "submission.accepted"
    REFUSED = "submission.refused"
    DELETED = "submission.deleted"
    DISQUALIFIED = "submission.disqualified"
    REINSTATED = "submission.reinstated"
    # What became of it: the secret pass follows a good public one; one row per move of a job.
    SECRET_PASS_QUEUED = "submission.secret_pass_queued"  # noqa: S105
    STARTING = "submission.starting"
    STARTED = "submission.started"
    REQUEUED = "submission.requeued"
    COLLECTING = "submission.collecting"
    SUCCEEDED = "submission.succeeded"
    FAILED = "submission.failed"
    TIMED_OUT = "submission.timed_out"
    CANCELLED = "submission.cancelled"
    PURGED = "submission.purged"


_OF_MOVE = {
    JobStatus.QUEUED: SubmissionVerb.REQUEUED,
    JobStatus.STARTING: SubmissionVerb.STARTING,
    JobStatus.RUNNING: SubmissionVerb.STARTED,
    JobStatus.COLLECTING: SubmissionVerb.COLLECTING,
    JobStatus.SUCCEEDED: SubmissionVerb.SUCCEEDED,
    JobStatus.FAILED: SubmissionVerb.FAILED,
    JobStatus.TIMED_OUT: SubmissionVerb.TIMED_OUT,
    JobStatus.CANCELLED: SubmissionVerb.CANCELLED,
}


def for_move(event: JobEvent) -> SubmissionVerb:
    """How the audit trail calls a change of the status of a submission's job."""
    return _OF_MOVE[JobStatus(event.to_status)]
