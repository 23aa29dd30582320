"""Where a request came from, for the audit trail."""

from __future__ import annotations

from django.http import HttpRequest

from leaderboards.api.client_address import client_address
from leaderboards.audit import RequestContext

# Key of the ASGI scope; kernelbot_site/asgi_wrappers.py sets it and answers X-Request-Id.
REQUEST_ID = "kernelbot.request_id"
CLIENT_VERSION_CHARS = 200


def request_context(request: HttpRequest) -> RequestContext:
    return RequestContext(
        request_id=getattr(request, "scope", {}).get(REQUEST_ID, ""),
        address=client_address(request),
        client_version=request.headers.get("User-Agent", "")[:CLIENT_VERSION_CHARS],
    )
