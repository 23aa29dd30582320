"""System checks of the whole site: what can be wrong together in the environment."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, register

LOCAL_CACHE = "django.core.cache.backends.locmem.LocMemCache"


@register()
def check_limits_have_a_shared_cache(**_: Any) -> list[CheckMessage]:
    """Flood limits are counted in the cache; counts that no other process sees are no limits."""
    if settings.WEB_PROCESSES > 1 and settings.CACHES["default"]["BACKEND"] == LOCAL_CACHE:
        return [
            Error(
                f"WEB_PROCESSES is {settings.WEB_PROCESSES}, but each of them counts on its own",
                hint="Point CACHE_URL at a Redis that all web processes share.",
                id="kernelbot_site.E001",
            )
        ]
    return []


@register()
def check_public_url(**_: Any) -> list[CheckMessage]:
    """Addresses in answers are built from it, never from a Host header that a client chose."""
    if not settings.PUBLIC_URL.startswith(("http://", "https://")):
        return [
            Error(
                "PUBLIC_URL must begin with http:// or https://",
                hint="For example https://kernelbot.example",
                id="kernelbot_site.E002",
            )
        ]
    return []
