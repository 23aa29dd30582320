"""Addresses of profiles. The CLI's route must stand before its three-segment catch-all."""

from __future__ import annotations

from django.urls import path

from leaderboards.api import converters  # noqa: F401  registers <name:…>
from profiling.api.views import ProfileRequestViewSet, ProfileViewSet

_request = "api/profile-requests/<uuid:pk>/"
_capture = f"{_request}captures/<int:index>/"
urlpatterns = [
    path("profile/<name:leaderboard>/<name:gpu>", ProfileViewSet.as_view({"post": "create"})),
    path(
        "api/profile-requests/",
        ProfileRequestViewSet.as_view({"get": "list"}),
        name="profile-requests",
    ),
    path(_request, ProfileRequestViewSet.as_view({"get": "retrieve"}), name="profile-request"),
    path(
        f"{_request}stream/",
        ProfileRequestViewSet.as_view({"get": "stream"}),
        name="profile-request-stream",
    ),
    path(
        f"{_request}cancel/",
        ProfileRequestViewSet.as_view({"post": "cancel"}),
        name="profile-request-cancel",
    ),
    path(
        f"{_request}rerun/",
        ProfileRequestViewSet.as_view({"post": "rerun"}),
        name="profile-request-rerun",
    ),
    path(
        f"{_capture}archive/",
        ProfileRequestViewSet.as_view({"get": "archive"}),
        name="capture-archive",
    ),
    path(
        f"{_capture}<str:name>",
        ProfileRequestViewSet.as_view({"get": "file"}),
        name="capture-file",
    ),
]
