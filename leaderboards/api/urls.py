"""Addresses of leaderboards and of the admin API."""

from __future__ import annotations

from django.urls import include, path

from leaderboards.api import (
    converters,  # noqa: F401  registers <name:…>
    discovery,
    operator_submissions,
    operators,
    problems,
    rankings,
    submissions,
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
    path(f"{_board}/submissions", operator_submissions.LeaderboardSubmissionsView.as_view()),
    path("submissions", operator_submissions.SubmissionsView.as_view()),
    path("submissions/<name:pk>", operator_submissions.SubmissionView.as_view()),
    path("stats", operator_submissions.StatsView.as_view()),
    path("update-problems", problems.update_problems),
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
    path(
        "submissions/<name:leaderboard>/<name:gpu>",
        rankings.RankingViewSet.as_view({"get": "list"}),
    ),
    path(
        "submission_count/<name:leaderboard>/<name:gpu>",
        rankings.RankingViewSet.as_view({"get": "count"}),
    ),
    path("user/submissions", submissions.UserSubmissionViewSet.as_view({"get": "list"})),
    path(
        "user/submissions/<name:pk>",
        submissions.UserSubmissionViewSet.as_view({"get": "retrieve", "delete": "destroy"}),
    ),
    path("admin/", include(_admin)),
]
