"""POST /admin/update-problems: leaderboards from a repository (wire-contract.md, 9)."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import wraps

from asgiref.sync import sync_to_async
from django.db import close_old_connections, connections
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from leaderboards.api.forms import read_body
from leaderboards.api.operators import OperatorView
from leaderboards.fetching.sync import sync_repository
from leaderboards.fetching.turns import one_at_a_time
from leaderboards.models import Leaderboard

# A fetch takes up to a minute, and all other views share a few threads: so it has threads of its
# own. More than one, so that whoever has no token or no turn is told so at once.
_THREADS = ThreadPoolExecutor(4, thread_name_prefix="problems")


class UpdateForm(serializers.Serializer[None]):
    repository = serializers.CharField(max_length=500)
    branch = serializers.CharField(max_length=200, default="main")
    force = serializers.BooleanField(default=False)
    problem_set = serializers.CharField(max_length=200, allow_null=True, default=None)
    visibility = serializers.ChoiceField(
        Leaderboard.Visibility.choices, default=Leaderboard.Visibility.PUBLIC
    )


class UpdateProblemsView(OperatorView):
    def post(self, request: Request) -> Response:
        order = read_body(request, UpdateForm)
        order["visibility"] = Leaderboard.Visibility(order["visibility"])
        with one_at_a_time():
            result = sync_repository(**order, **self.by)
        return Response(
            {
                "status": "ok",
                "created": result.created,
                "updated": [name for name, _ in result.updated],
                "skipped": [{"name": name, "reason": why} for name, why in result.skipped],
                "errors": [{"name": name, "error": error} for name, error in result.errors],
            }
        )


_view = UpdateProblemsView.as_view()


@wraps(_view)
async def update_problems(request: HttpRequest) -> HttpResponseBase:
    """The whole view in a thread of its own, with a database connection that ends with it."""
    return await sync_to_async(_in_own_thread, thread_sensitive=False, executor=_THREADS)(request)


def _in_own_thread(request: HttpRequest) -> HttpResponseBase:
    close_old_connections()
    try:
        return _view(request)
    finally:
        connections.close_all()
