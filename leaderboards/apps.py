from __future__ import annotations

from django.apps import AppConfig


class LeaderboardsConfig(AppConfig):
    name = "leaderboards"

    def ready(self) -> None:
        from leaderboards import checks  # noqa: F401  registers them
        from leaderboards.job_handler import KINDS, SubmissionJobHandler
        from runners.handlers import register

        for kind in KINDS:
            register(kind, SubmissionJobHandler())
