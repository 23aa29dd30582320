"""How pages are sent: no scripts, nothing from elsewhere, kept by nobody."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any
from urllib.parse import urlsplit

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render

from leaderboards.identity.providers import offered_providers
from runners.exceptions import ServiceError


def send_page(
    request: HttpRequest, template: str, facts: dict[str, Any] | None = None, status: int = 200
) -> HttpResponse:
    response = render(request, f"identity/{template}", facts or {}, status=status)
    response["Content-Security-Policy"] = _policy()
    response["Cache-Control"] = "no-store"
    return response


def send_error(request: HttpRequest, error: ServiceError) -> HttpResponse:
    """A short page with a way to begin again, or the API's JSON for who prefers that."""
    if request.get_preferred_type(["text/html", "application/json"]) == "application/json":
        body = {"detail": str(error), "code": error.code}
        response: HttpResponse = JsonResponse(body, status=error.http_status)
    else:
        response = send_page(request, "error.html", {"error": error}, error.http_status)
    if error.retry_after is not None:
        response["Retry-After"] = str(error.retry_after)
    # The address of a failed callback has a code in it, which must not travel as a referrer.
    response["Referrer-Policy"] = "no-referrer"
    return response


def tells_errors(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """What DRF's exception handler is to the API."""

    @wraps(view)
    def wrapped(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        try:
            return view(request, *args, **kwargs)
        except ServiceError as error:
            return send_error(request, error)

    return wrapped


def _policy() -> str:
    # Browsers hold a form to its action's redirects too, and signing in redirects to a provider.
    targets = {urlsplit(each.authorize_url) for each in offered_providers()}
    origins = sorted(f"{target.scheme}://{target.netloc}" for target in targets)
    return (
        "default-src 'none'; style-src 'self'; img-src 'self'; base-uri 'none'; "
        f"frame-ancestors 'none'; form-action {' '.join(["'self'", *origins])}"
    )
