"""Requests that come too fast: refused before anything is read, and counted by the minute."""

from __future__ import annotations

from django.http import HttpRequest
from django.utils import timezone
from django_ratelimit.core import get_usage

from leaderboards.api.client_address import address_key, client_address
from leaderboards.models import FloodRefusal, PopcornUser
from runners.exceptions import ServiceError


class TooManyRequests(ServiceError):
    code = "too_many_requests"
    http_status = 429


def limit_flood(request: HttpRequest, *, route: str, rate: str, user: PopcornUser | None) -> None:
    """Count one request of a person, or of an address while nobody is known.

    `rate` is django-ratelimit's, "30/m". Raises TooManyRequests beyond it.
    """
    address = address_key(client_address(request))
    identity = f"user:{user.user_id}" if user else f"address:{address}"
    usage = get_usage(
        request, group=route, key=lambda _group, _request: identity, rate=rate, increment=True
    )
    if usage is None or not usage["should_limit"]:
        return
    FloodRefusal.count_one(identity, route, timezone.now())
    wait = max(1, usage["time_left"])
    raise TooManyRequests(
        f"too many requests (at most {rate}): try again in {wait} seconds", retry_after=wait
    )
