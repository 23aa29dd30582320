"""Who is ranked: wire-contract.md, 12 and 14."""

from __future__ import annotations

from rest_framework import viewsets
from rest_framework.request import Request
from rest_framework.response import Response

from leaderboards.access import require_reader
from leaderboards.api.authentication import OptionalClientId
from leaderboards.api.paging import OFFSET_MAX, read_page
from leaderboards.api.patience import PatientReads
from leaderboards.api.wire_shapes import show_ranked
from leaderboards.models import Leaderboard, PopcornUser
from leaderboards.preparation import find_leaderboard
from leaderboards.rankings import count_ranked, find_gpu_of, ranked_runs


class RankingViewSet(PatientReads, viewsets.ViewSet):
    """For everybody, but of closed leaderboards."""

    authentication_classes = [OptionalClientId]
    metadata_class = None

    def list(self, request: Request, leaderboard: str, gpu: str) -> Response:
        board, gpu = self._find(request, leaderboard, gpu)
        page = read_page(request, default=OFFSET_MAX, maximum=OFFSET_MAX)
        ranked = ranked_runs(board, gpu, limit=page.limit, offset=page.offset)
        return Response([show_ranked(each, board, gpu) for each in ranked])

    def count(self, request: Request, leaderboard: str, gpu: str) -> Response:
        board, gpu = self._find(request, leaderboard, gpu)
        user_id = request.query_params.get("user_id") or None
        return Response({"count": count_ranked(board, gpu, user_id)})

    def _find(self, request: Request, leaderboard: str, gpu: str) -> tuple[Leaderboard, str]:
        board = find_leaderboard(leaderboard)
        require_reader(board, request.user if isinstance(request.user, PopcornUser) else None)
        return board, find_gpu_of(board, gpu)
