"""People, leaderboards, submissions and the audit trail in the admin site."""

from __future__ import annotations

from leaderboards.admin import (  # noqa: F401  registers them
    boards,
    competition,
    people,
    revisions,
    runs,
    submissions,
    trail,
)
