"""System checks of this app: what can be wrong together in who may ask. No check shows a secret."""

from __future__ import annotations

import re
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, register

ADMIN_TOKEN_MIN_CHARS = 16
RATES = ("AUTH_RATE", "ACTIVATION_RATE", "PROFILE_RATE")
_RATE = re.compile(r"[0-9]+/[0-9]*[smhd]")
_VISIBLE_ASCII = re.compile(r"[!-~]*")


@register()
def check_providers_are_whole(**_: Any) -> list[CheckMessage]:
    """A provider with half of its credentials would be silently left out."""
    return [
        Error(
            f"Of {name}_CLIENT_ID and {name}_CLIENT_SECRET only one is set",
            hint="Set both to offer this sign-in, or none.",
            id="leaderboards.E001",
        )
        for name in ("DISCORD", "GITHUB")
        if bool(getattr(settings, f"{name}_CLIENT_ID"))
        != bool(getattr(settings, f"{name}_CLIENT_SECRET"))
    ]


@register()
def check_admin_token(**_: Any) -> list[CheckMessage]:
    """The CLI sends it in a header, and everything can be done with it."""
    token: str = settings.ADMIN_TOKEN
    if token and (len(token) < ADMIN_TOKEN_MIN_CHARS or not _VISIBLE_ASCII.fullmatch(token)):
        return [
            Error(
                f"ADMIN_TOKEN is shorter than {ADMIN_TOKEN_MIN_CHARS} characters or is not made of "
                "visible ASCII characters",
                hint="Make one with `openssl rand -hex 32`, or leave it empty to switch the API off.",
                id="leaderboards.E002",
            )
        ]
    return []


@register()
def check_trusted_proxies(**_: Any) -> list[CheckMessage]:
    """Who trusts everybody lets each client write its own address."""
    return [
        Error(
            f"TRUSTED_PROXIES has {network}, which is everybody",
            hint="Name the addresses or the network of your proxies.",
            id="leaderboards.E003",
        )
        for network in settings.TRUSTED_PROXIES.networks
        if network.prefixlen == 0
    ]


@register()
def check_rates(**_: Any) -> list[CheckMessage]:
    """One that cannot be read would be noticed by the first client, as an error of ours."""
    return [
        Error(
            f"{name} is not a rate: {getattr(settings, name)!r}",
            hint="A number, a slash, and s, m, h or d: 20/m",
            id="leaderboards.E004",
        )
        for name in RATES
        if not _RATE.fullmatch(getattr(settings, name))
    ]


@register()
def check_problem_schemes(**_: Any) -> list[CheckMessage]:
    """A task is code: who can change it on the way decides what runs and what is right."""
    if settings.DEBUG or settings.PROBLEM_SCHEMES == ["https"]:
        return []
    return [
        Error(
            f"PROBLEM_SCHEMES is {settings.PROBLEM_SCHEMES}, and all but https is for tests",
            hint="Leave it at https, or sync a checkout: manage.py sync_problems DIRECTORY",
            id="leaderboards.E005",
        )
    ]
