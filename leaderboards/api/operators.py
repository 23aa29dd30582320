"""The admin API for leaderboards, invites and limits (wire-contract.md, 9 and 12).

Left out of what the reference offers, and said so: application validations and the export to
Hugging Face.
"""

from __future__ import annotations

from typing import Any

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from leaderboards.actions import change_leaderboard
from leaderboards.api.context import request_context
from leaderboards.api.forms import read_body, read_query
from leaderboards.api.operator_token import OPERATOR_LABEL, AdminTokenAuthentication
from leaderboards.audit import By
from leaderboards.boards import create_dev_leaderboard, delete_leaderboard
from leaderboards.invites import CODES_AT_ONCE, create_invites, revoke_invite
from leaderboards.limits import remove_rate_limit, set_rate_limit, switch_acceptance
from leaderboards.models import Leaderboard, ModeCategory, RateLimit
from leaderboards.preparation import find_leaderboard
from runners.exceptions import ServiceError

HOURLY_MAX = 2**31 - 1


class NotOffered(ServiceError):
    code = "not_offered"
    http_status = 501


class OperatorView(APIView):
    """A route for whoever holds the admin token."""

    authentication_classes = [AdminTokenAuthentication]

    @property
    def by(self) -> By:
        context = request_context(self.request._request)
        return By(actor=None, actor_label=OPERATOR_LABEL, context=context)


class AcceptanceView(OperatorView):
    """POST /admin/start and /admin/stop."""

    accepts = True

    def post(self, request: Request) -> Response:
        switch_acceptance(self.accepts, **self.by)
        return Response({"status": "ok", "accepts_jobs": self.accepts})


class DirectoryForm(serializers.Serializer[None]):
    directory = serializers.CharField(max_length=200)
    visibility = serializers.ChoiceField(
        Leaderboard.Visibility.choices, default=Leaderboard.Visibility.PUBLIC
    )


class LeaderboardsView(OperatorView):
    """POST /admin/leaderboards: a leaderboard for trying a problem of this server."""

    def post(self, request: Request) -> Response:
        order = read_body(request, DirectoryForm)
        board = create_dev_leaderboard(
            order["directory"], visibility=Leaderboard.Visibility(order["visibility"]), **self.by
        )
        return Response({"status": "ok", "leaderboard": board.name})


class ForceForm(serializers.Serializer[None]):
    force = serializers.BooleanField(default=False)


class LeaderboardView(OperatorView):
    """DELETE /admin/leaderboards/{leaderboard}."""

    def delete(self, request: Request, leaderboard: str) -> Response:
        force: bool = read_query(request, ForceForm)["force"]
        board = find_leaderboard(leaderboard)
        delete_leaderboard(board, force=force, **self.by)
        return Response({"status": "ok", "leaderboard": board.name, "force": force})


class VisibilityForm(serializers.Serializer[None]):
    visibility = serializers.ChoiceField(Leaderboard.Visibility.choices)


class VisibilityView(OperatorView):
    """POST /admin/leaderboards/{leaderboard}/visibility."""

    def post(self, request: Request, leaderboard: str) -> Response:
        wanted = read_body(request, VisibilityForm)
        board = find_leaderboard(leaderboard)
        change_leaderboard(board, changes=wanted, **self.by)
        return Response({"status": "ok", "leaderboard": board.name, "visibility": board.visibility})


class InvitesForm(serializers.Serializer[None]):
    leaderboards = serializers.ListField(
        child=serializers.CharField(max_length=200), required=False, max_length=100
    )
    leaderboard = serializers.CharField(max_length=200, required=False)
    count = serializers.IntegerField(min_value=1, max_value=CODES_AT_ONCE)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        one = [attrs["leaderboard"]] if "leaderboard" in attrs else []
        attrs["leaderboards"] = attrs.get("leaderboards") or one
        if not attrs["leaderboards"]:
            raise serializers.ValidationError("leaderboards: at least one name is needed")
        return attrs


class InvitesView(OperatorView):
    """POST /admin/invites."""

    def post(self, request: Request) -> Response:
        order = read_body(request, InvitesForm)
        boards = {board.pk: board for board in map(find_leaderboard, order["leaderboards"])}
        invites = create_invites(list(boards.values()), order["count"], **self.by)
        return Response(
            {
                "status": "ok",
                "leaderboards": [board.name for board in boards.values()],
                "codes": [invite.code for invite in invites],
            }
        )


class InviteView(OperatorView):
    """DELETE /admin/invites/{code}."""

    def delete(self, request: Request, code: str) -> Response:
        invite = revoke_invite(code, **self.by)
        claimed = invite.claimed_by_id is not None
        return Response({"status": "ok", "code": invite.code, "was_claimed": claimed})


class LeaderboardInvitesView(OperatorView):
    """GET /admin/leaderboards/{leaderboard}/invites: those that were not revoked."""

    def get(self, request: Request, leaderboard: str) -> Response:
        board = find_leaderboard(leaderboard)
        standing = board.invites.standing().select_related("claimed_by").order_by("id")
        invites = [
            {
                "code": invite.code,
                "user_id": invite.claimed_by.user_id if invite.claimed_by else None,
                "user_name": invite.claimed_by.shown_name if invite.claimed_by else None,
                "claimed_at": invite.claimed_at,
                "created_at": invite.created_at,
            }
            for invite in standing
        ]
        return Response({"status": "ok", "leaderboard": board.name, "invites": invites})


class RateLimitForm(serializers.Serializer[None]):
    mode_category = serializers.ChoiceField(ModeCategory.choices)
    max_submissions_per_hour = serializers.IntegerField(min_value=0, max_value=HOURLY_MAX)


class RateLimitsView(OperatorView):
    """GET and PUT /admin/leaderboards/{leaderboard}/rate-limits."""

    def get(self, request: Request, leaderboard: str) -> Response:
        board = find_leaderboard(leaderboard)
        limits = [_shown_limit(limit, board) for limit in board.rate_limits.order_by("id")]
        return Response({"status": "ok", "leaderboard": board.name, "rate_limits": limits})

    def put(self, request: Request, leaderboard: str) -> Response:
        order = read_body(request, RateLimitForm)
        board = find_leaderboard(leaderboard)
        category = ModeCategory(order["mode_category"])
        limit = set_rate_limit(board, category, order["max_submissions_per_hour"], **self.by)
        return Response({"status": "ok", "rate_limit": _shown_limit(limit, board)})


class RateLimitView(OperatorView):
    """DELETE /admin/leaderboards/{leaderboard}/rate-limits/{category}."""

    def delete(self, request: Request, leaderboard: str, category: str) -> Response:
        board = find_leaderboard(leaderboard)
        if category not in ModeCategory:
            raise BadCategory(f"a category is one of: {', '.join(ModeCategory)}")
        remove_rate_limit(board, ModeCategory(category), **self.by)
        return Response({"status": "ok", "leaderboard": board.name, "mode_category": category})


class BadCategory(ServiceError):
    code = "bad_category"


class NotOfferedView(OperatorView):
    """What the reference has and this service has not."""

    what = ""

    def post(self, request: Request, **_: str) -> Response:
        raise NotOffered(f"{self.what} not offered by this service")


def _shown_limit(limit: RateLimit, board: Leaderboard) -> dict[str, Any]:
    return {
        "id": limit.pk,
        "leaderboard_id": board.pk,
        "leaderboard_name": board.name,
        "mode_category": limit.mode_category,
        "max_submissions_per_hour": limit.max_submissions_per_hour,
    }
