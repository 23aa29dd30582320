"""People, tasks, submissions, and the record of what was done."""

from __future__ import annotations

from leaderboards.models.audit import AuditEvent, FloodRefusal
from leaderboards.models.people import ClientId, Identity, PopcornUser, digest_client_id
from leaderboards.models.submissions import Submission, SubmissionSource
from leaderboards.models.tasks import Leaderboard, TaskRevision

__all__ = [
    "AuditEvent",
    "ClientId",
    "FloodRefusal",
    "Identity",
    "Leaderboard",
    "PopcornUser",
    "Submission",
    "SubmissionSource",
    "TaskRevision",
    "digest_client_id",
]
