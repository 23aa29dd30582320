"""Leaderboards, their GPUs and the queues, and the joining of closed ones."""

from __future__ import annotations

import logging

from django.conf import settings
from django.db import DatabaseError
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from leaderboards.access import require_reader
from leaderboards.api.authentication import CliIdAuthentication, OptionalClientId, person
from leaderboards.api.context import request_context
from leaderboards.api.flood import limit_flood
from leaderboards.api.forms import read_body
from leaderboards.discovery import list_leaderboards, offered_gpus, runner_queue
from leaderboards.invites import claim_invite
from leaderboards.models import PopcornUser
from leaderboards.preparation import find_leaderboard
from leaderboards.runner_queue import show_queue

log = logging.getLogger(__name__)


class LeaderboardsView(APIView):
    """GET /leaderboards: for everybody, whatever id is sent along."""

    def get(self, request: Request) -> Response:
        return Response(list_leaderboards())


class GpusView(APIView):
    """GET /gpus/{leaderboard}: of a closed one, for its members."""

    authentication_classes = [OptionalClientId]

    def get(self, request: Request, leaderboard: str) -> Response:
        board = find_leaderboard(leaderboard)
        require_reader(board, request.user if isinstance(request.user, PopcornUser) else None)
        return Response(offered_gpus(board))


class RunnerQueueView(APIView):
    """GET /runner_queue/{gpu}: always 200, since a page that shows it should not fail for it."""

    def get(self, request: Request, gpu: str) -> Response:
        try:
            return Response(runner_queue(gpu))
        except DatabaseError:
            log.exception("the queue cannot be read")
            facts = {"queued_jobs": None, "running_jobs": None, "gpu_is_paused": False}
            error = "the queue cannot be read at present"
            return Response(show_queue(gpu, facts) | {"status": "unavailable", "error": error})


class JoinForm(serializers.Serializer[None]):
    code = serializers.CharField(max_length=200)


class JoinView(APIView):
    """POST /user/join: claim an invite code."""

    authentication_classes = [CliIdAuthentication]

    def post(self, request: Request) -> Response:
        user = person(request)
        limit_flood(request._request, route="join", rate=settings.ACTIVATION_RATE, user=user)
        names = claim_invite(
            read_body(request, JoinForm)["code"],
            user=user,
            actor=user,
            context=request_context(request._request),
        )
        return Response({"status": "ok", "leaderboards": names})
