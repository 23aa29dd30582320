"""What programs ask about identity: a new CLI id, and bans (wire-contract.md, 3.1 and 12)."""

from __future__ import annotations

from django.conf import settings
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from leaderboards.api.client_address import client_address
from leaderboards.api.flood import limit_flood
from leaderboards.api.operator_token import AdminTokenAuthentication, by_token
from leaderboards.identity.bans import ban_user, unban_user, user_called
from leaderboards.identity.client_ids import issue_cli_id
from leaderboards.identity.providers import require_known


class AuthInitView(APIView):
    """GET /auth/init?provider=: an id for a CLI, nobody's until it is activated."""

    http_method_names = ["get"]

    def get(self, request: Request) -> Response:
        limit_flood(request._request, route="auth-init", rate=settings.AUTH_RATE, user=None)
        require_known(request.query_params.get("provider", ""))
        issued = issue_cli_id(client_address(request._request))
        return Response({"state": issued}, headers={"Cache-Control": "no-store"})


class BanSerializer(serializers.Serializer[None]):
    reason = serializers.CharField(max_length=500, allow_blank=True, default="")


class BanView(APIView):
    """POST and DELETE /admin/ban/{user_id}; a JSON body may give a `reason`."""

    authentication_classes = [AdminTokenAuthentication]

    def post(self, request: Request, user_id: str) -> Response:
        user = user_called(user_id)
        ban_user(user, reason=_reason(request), **by_token(request))
        return Response({"status": "ok", "user_id": user.user_id, "banned": True})

    def delete(self, request: Request, user_id: str) -> Response:
        user = user_called(user_id)
        unban_user(user, reason=_reason(request), **by_token(request))
        return Response({"status": "ok", "user_id": user.user_id, "banned": False})


def _reason(request: Request) -> str:
    form = BanSerializer(data=request.data)
    form.is_valid(raise_exception=True)
    reason: str = form.validated_data["reason"]
    return reason
