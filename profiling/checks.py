"""System checks of this app."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, register

from profiling.actions import INTEGER_MAX


@register()
def check_launch_count(**_: Any) -> list[CheckMessage]:
    """What clients may ask for is kept in an integer column."""
    if 1 <= settings.LAUNCH_COUNT_MAX <= INTEGER_MAX:
        return []
    return [
        Error(
            f"LAUNCH_COUNT_MAX is {settings.LAUNCH_COUNT_MAX}, it must be 1 to {INTEGER_MAX}",
            hint="It bounds ncu_launch_count, of which each launch costs dozens of replay passes.",
            id="profiling.E001",
        )
    ]
