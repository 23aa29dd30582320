from __future__ import annotations

from django.apps import AppConfig


class KernelbotSiteConfig(AppConfig):
    name = "kernelbot_site"

    def ready(self) -> None:
        from kernelbot_site import checks  # noqa: F401  registers them
