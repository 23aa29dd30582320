from __future__ import annotations

from django.apps import AppConfig
from django.conf import settings

from kernelbot_site.logs import Line


class KernelbotSiteConfig(AppConfig):
    name = "kernelbot_site"

    def ready(self) -> None:
        from kernelbot_site import checks  # noqa: F401  registers them
        from kernelbot_site.sentry import report_errors

        if settings.SENTRY_DSN:
            report_errors(settings.SENTRY_DSN, Line(settings.SECRETS))
