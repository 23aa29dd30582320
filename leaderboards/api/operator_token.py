"""The *admin* guard: whoever holds ADMIN_TOKEN acts as "admin token" (wire-contract.md, 9)."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.utils.crypto import constant_time_compare
from rest_framework.authentication import BaseAuthentication
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.permissions import BasePermission
from rest_framework.request import Request

from leaderboards.api.context import request_context
from leaderboards.audit import By

# `actor_label` of audit rows: a token is nobody's, so that their `actor` is empty.
OPERATOR_LABEL = "admin token"
SCHEME = "Bearer"


def by_token(request: Request) -> By:
    """Who the audit trail names for a deed behind this guard: pass it on as `**by_token(request)`."""
    context = request_context(request._request)
    return {"actor": None, "actor_label": OPERATOR_LABEL, "context": context}


class AdminTokenHolder:
    """`request.user` behind the guard; no person."""

    is_authenticated = True

    def __str__(self) -> str:
        return OPERATOR_LABEL


class AdminTokenAuthentication(BaseAuthentication):
    """For routes that need the token and nobody's identity."""

    def authenticate(self, request: Request) -> tuple[AdminTokenHolder, None]:
        check_admin_token(request)
        return AdminTokenHolder(), None

    def authenticate_header(self, request: Request) -> str:
        return SCHEME


class RequiresAdminToken(BasePermission):
    """For routes that need a person (by their authentication class) and the token as well."""

    def has_permission(self, request: Request, view: Any) -> bool:
        check_admin_token(request)
        return True


def check_admin_token(request: Request) -> None:
    """Raises AuthenticationFailed unless the header is `Bearer <ADMIN_TOKEN>`, byte by byte.

    Without a token in the settings nobody passes.
    """
    token: str = settings.ADMIN_TOKEN
    # Header values arrive as Latin-1; a client that has such a token sends its UTF-8.
    sent = request.headers.get("Authorization", "").encode("latin-1", "replace")
    if not token or not constant_time_compare(sent, f"{SCHEME} {token}".encode()):
        raise AuthenticationFailed("the admin API needs the service's admin token")
