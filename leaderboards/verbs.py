"""The closed list of what the audit trail says of people and leaderboards."""

from __future__ import annotations

from django.db import models


class Verb(models.TextChoices):
    LEADERBOARD_CREATED = "leaderboard.created"
    LEADERBOARD_CHANGED = "leaderboard.changed"
    TASK_REVISED = "leaderboard.task_revised"
    USER_REGISTERED = "user.registered"
    USER_CHANGED = "user.changed"
    USER_SIGNED_IN = "user.signed_in"
    USER_BANNED = "user.banned"
    USER_UNBANNED = "user.unbanned"
    CLI_ID_ISSUED = "user.cli_id_issued"
    CLI_ID_ACTIVATED = "user.cli_id_activated"
    CLIENT_ID_REVOKED = "user.client_id_revoked"
