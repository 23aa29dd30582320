"""Where a request came from, for the audit trail."""

from __future__ import annotations

from django.core.exceptions import ValidationError
from django.core.validators import validate_ipv46_address
from django.http import HttpRequest

from leaderboards.audit import RequestContext

# Key of the ASGI scope; kernelbot_site/asgi_wrappers.py sets it and answers X-Request-Id.
REQUEST_ID = "kernelbot.request_id"
CLIENT_VERSION_CHARS = 200


def peer_address(request: HttpRequest) -> str | None:
    """The other end of the connection; forwarded headers are not believed."""
    address: str = request.META.get("REMOTE_ADDR") or ""
    try:
        validate_ipv46_address(address)
    except ValidationError:
        return None
    return address


def request_context(request: HttpRequest) -> RequestContext:
    return RequestContext(
        request_id=getattr(request, "scope", {}).get(REQUEST_ID, ""),
        address=peer_address(request),
        client_version=request.headers.get("User-Agent", "")[:CLIENT_VERSION_CHARS],
    )
