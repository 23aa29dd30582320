"""People, leaderboards, submissions and the audit trail in the admin site."""

from __future__ import annotations

from leaderboards.admin import boards, people, submissions, trail  # noqa: F401  registers them
