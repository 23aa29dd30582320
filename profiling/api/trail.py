"""Who did what with a request: its audit trail, for its owner and for operators."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from rest_framework.pagination import CursorPagination
from rest_framework.request import Request
from rest_framework.response import Response

from leaderboards.api.authentication import OperatorSession, person
from leaderboards.models import AuditEvent
from profiling.api.views import ProfileRequestViewSet
from profiling.trail import events_of


class OldestFirst(CursorPagination):
    """A request's whole trail fits a page, unless many people downloaded it for days."""

    ordering = "pk"
    page_size = 500


class TrailViewSet(ProfileRequestViewSet):
    """GET /api/profile-requests/{id}/audit/."""

    def trail(self, request: Request, pk: UUID) -> Response:
        events = events_of(self.get_object()).select_related("actor")
        pages = OldestFirst()
        page = pages.paginate_queryset(events, request, view=self) or []
        reader = person(request)
        operates = isinstance(request.successful_authenticator, OperatorSession)
        whole = operates and reader.has_perm("profiling.view_profilerequest")
        rows = [_shown(event, whole=whole or event.actor == reader) for event in page]
        return pages.get_paginated_response(rows)


def _shown(event: AuditEvent, *, whole: bool) -> dict[str, Any]:
    """Where another person came from is nobody's but the operators'."""
    return {
        "created_at": event.created_at.isoformat(),
        "verb": event.verb,
        "actor": event.actor.user_id if event.actor else None,
        "actor_label": event.actor_label if whole else _who(event),
        "data": event.data,
        "request_id": event.request_id if whole else None,
        "address": event.address if whole else None,
        "client_version": event.client_version if whole else None,
    }


def _who(event: AuditEvent) -> str:
    """A dispatcher calls itself by its machine's name, too."""
    is_dispatcher = event.actor is None and event.actor_label.startswith("dispatcher ")
    return "dispatcher" if is_dispatcher else event.actor_label
