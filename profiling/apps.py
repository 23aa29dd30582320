from __future__ import annotations

from django.apps import AppConfig


class ProfilingConfig(AppConfig):
    name = "profiling"

    def ready(self) -> None:
        from leaderboards.deletion import register_forgetting, register_jobs
        from profiling import checks  # noqa: F401  registers them
        from profiling.capture_facts import forget_details
        from profiling.configs import KIND
        from profiling.job_handler import ProfileJobHandler, jobs_of_profiles
        from runners.handlers import register

        register(KIND, ProfileJobHandler())
        register_jobs(jobs_of_profiles)
        register_forgetting(forget_details)
