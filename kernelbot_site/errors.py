"""The one place where an exception becomes an answer: JSON with one string `detail`.

popcorn-cli reads `detail` and nothing else, so structure goes into further keys: `code` is stable
and for programs, `errors` lists what is wrong field by field.
"""

from __future__ import annotations

import logging
from typing import Any

from django.db import OperationalError
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views import defaults
from redis.exceptions import RedisError
from rest_framework.exceptions import APIException, ValidationError
from rest_framework.response import Response
from rest_framework.views import exception_handler as drf_exception_handler
from rest_framework.views import set_rollback

from leaderboards.identity.exceptions import FormExpired
from leaderboards.identity.rendering import send_error
from runners.exceptions import ServiceError

log = logging.getLogger(__name__)

BUSY_RETRY_S = 5
# Wrong values that the reference answers with 400; other misfits are 422 (wire-contract.md, 6.2).
_BAD_VALUE_CODES = {"invalid_choice", "null_characters_not_allowed"}


def exception_handler(exc: Exception, context: dict[str, Any]) -> Response | None:
    """DRF's hook. None lets an unknown exception become a logged 500 without its text."""
    if isinstance(exc, ServiceError):
        set_rollback()
        return _service_error(exc)
    if isinstance(exc, (OperationalError, RedisError)):
        # Database or cache are locked or away: nothing is wrong with the request, which may be
        # repeated. Without the cache's counts there would be no flood limits.
        log.error("database or cache unavailable", exc_info=exc)
        set_rollback()
        detail = "the service is busy, try again in a few seconds"
        body = {"detail": detail, "code": "busy", "retry_after": BUSY_RETRY_S}
        return Response(body, 503, headers={"Retry-After": str(BUSY_RETRY_S)})
    response = drf_exception_handler(exc, context)
    if response is not None and isinstance(exc, ValidationError):
        errors = list(_flatten(exc.get_full_details()))
        wrong_values = all(error["code"] in _BAD_VALUE_CODES for error in errors)
        response.status_code = 400 if wrong_values else 422
        detail = "; ".join(f"{e['field']}: {e['message']}" for e in errors)
        response.data = {"detail": detail, "code": "invalid", "errors": errors}
    elif response is not None and isinstance(exc, APIException):
        response.data = {"detail": str(exc.detail), "code": exc.default_code}
    elif response is not None:
        response.data["code"] = "not_found" if response.status_code == 404 else "forbidden"
    return response


def _service_error(error: ServiceError) -> Response:
    body: dict[str, Any] = {"detail": str(error), "code": error.code}
    headers = {}
    if error.retry_after is not None:
        body["retry_after"] = error.retry_after
        headers["Retry-After"] = str(error.retry_after)
    return Response(body, error.http_status, headers=headers)


def _flatten(details: Any, field: str = "") -> Any:
    """DRF's nested errors as {"field", "message", "code"} in a flat list."""
    if isinstance(details, dict) and set(details) == {"message", "code"}:
        yield {"field": field or "body", **{k: str(v) for k, v in details.items()}}
    elif isinstance(details, dict):
        for name, inner in details.items():
            yield from _flatten(inner, f"{field}.{name}" if field else str(name))
    else:
        for inner in details:
            yield from _flatten(inner, field)


# --- Errors made outside DRF: Django's own handlers (urls.py) ---
def _is_for_operators(request: HttpRequest) -> bool:
    return request.path.startswith("/operators/")


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    if _is_for_operators(request):
        return defaults.page_not_found(request, exception)
    return JsonResponse(
        {"detail": "there is nothing at this address", "code": "not_found"}, status=404
    )


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    if _is_for_operators(request):
        return defaults.bad_request(request, exception)
    return JsonResponse({"detail": "the request cannot be read", "code": "bad_request"}, status=400)


def forbidden(request: HttpRequest, exception: Exception) -> HttpResponse:
    if _is_for_operators(request):
        return defaults.permission_denied(request, exception)
    return JsonResponse({"detail": "this is not allowed", "code": "forbidden"}, status=403)


def server_error(request: HttpRequest) -> HttpResponse:
    if _is_for_operators(request):
        return defaults.server_error(request)
    detail = "something went wrong in the service; nothing is wrong with your request"
    return JsonResponse({"detail": detail, "code": "internal_error"}, status=500)


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    """Only forms of pages can meet this; the API takes no cookies."""
    error = FormExpired("the form has expired: reload the page and send it again")
    if request.path.startswith("/activate/"):
        return send_error(request, error)
    return JsonResponse({"detail": str(error), "code": error.code}, status=error.http_status)
