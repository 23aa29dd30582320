"""People, tasks, submissions, and the record of what was done."""

from __future__ import annotations

from leaderboards.models.audit import AuditEvent, FloodRefusal
from leaderboards.models.invites import Invite
from leaderboards.models.limits import AcceptanceSwitch, ModeCategory, RateLimit
from leaderboards.models.logins import LoginAttempt
from leaderboards.models.people import ClientId, Identity, PopcornUser, digest_client_id
from leaderboards.models.runs import Run, SubmissionJob
from leaderboards.models.standings import Standing
from leaderboards.models.submissions import Submission, SubmissionSource
from leaderboards.models.tasks import Leaderboard, TaskRevision

__all__ = [
    "AcceptanceSwitch",
    "AuditEvent",
    "ClientId",
    "FloodRefusal",
    "Identity",
    "Invite",
    "Leaderboard",
    "LoginAttempt",
    "ModeCategory",
    "PopcornUser",
    "RateLimit",
    "Run",
    "Standing",
    "Submission",
    "SubmissionJob",
    "SubmissionSource",
    "TaskRevision",
    "digest_client_id",
]
