"""Addresses of leaderboards and of the admin API."""

from __future__ import annotations

from django.urls import include, path

from leaderboards.api import (
    converters,  # noqa: F401  registers <name:…>
    discovery,
    operators,
)

_board = "leaderboards/<name:leaderboard>"
_admin = [
    path("start", operators.AcceptanceView.as_view(accepts=True)),
    path("stop", operators.AcceptanceView.as_view(accepts=False)),
    path("leaderboards", operators.LeaderboardsView.as_view()),
    path(_board, operators.LeaderboardView.as_view()),
    path(f"{_board}/visibility", operators.VisibilityView.as_view()),
    path(f"{_board}/invites", operators.LeaderboardInvitesView.as_view()),
    path(f"{_board}/rate-limits", operators.RateLimitsView.as_view()),
    path(f"{_board}/rate-limits/<name:category>", operators.RateLimitView.as_view()),
    path("invites", operators.InvitesView.as_view()),
    path("invites/<name:code>", operators.InviteView.as_view()),
    path(
        "application-validations/<name:leaderboard>/<name:gpu>",
        operators.NotOfferedView.as_view(what="application validations are"),
    ),
    path("export-hf", operators.NotOfferedView.as_view(what="the export to Hugging Face is")),
]
urlpatterns = [
    path("leaderboards", discovery.LeaderboardsView.as_view()),
    path("gpus/<name:leaderboard>", discovery.GpusView.as_view()),
    path("runner_queue/<name:gpu>", discovery.RunnerQueueView.as_view()),
    path("user/join", discovery.JoinView.as_view()),
    path("admin/", include(_admin)),
]
