"""Addresses of profiles, and of submissions in every mode."""

from __future__ import annotations

from django.urls import path

from leaderboards.api import converters  # noqa: F401  registers <name:…>
from profiling.api.brev import BrevJobViewSet, BrevProfileViewSet
from profiling.api.evidence import EvidenceViewSet
from profiling.api.submissions import AdminSubmissionViewSet, SubmissionViewSet
from profiling.api.trail import TrailViewSet
from profiling.api.views import ProfileRequestViewSet, ProfileViewSet

_modes = "<name:leaderboard>/<name:gpu>/<name:mode>"
_request = "api/profile-requests/<uuid:pk>/"
_capture = f"{_request}captures/<int:index>/"
urlpatterns = [
    path("profile/<name:leaderboard>/<name:gpu>", ProfileViewSet.as_view({"post": "create"})),
    path(f"submission/{_modes}", SubmissionViewSet.as_view({"post": "create"})),
    path(f"admin/submission/{_modes}", AdminSubmissionViewSet.as_view({"post": "create"})),
    path("profile", BrevProfileViewSet.as_view({"post": "create"})),
    path("jobs/<uuid:pk>", BrevJobViewSet.as_view({"get": "retrieve"})),
    path(
        "jobs/<uuid:pk>/artifacts/<name:name>",
        BrevJobViewSet.as_view({"get": "artifact"}),
        name="brev-artifact",
    ),
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
    path(f"{_request}audit/", TrailViewSet.as_view({"get": "trail"}), name="profile-request-audit"),
    path(
        f"{_capture}archive/",
        ProfileRequestViewSet.as_view({"get": "archive"}),
        name="capture-archive",
    ),
    path(
        "api/captures/compare",
        EvidenceViewSet.as_view({"get": "compare"}),
        name="captures-compare",
    ),
    *(
        path(
            f"{place}summary.{form}",
            EvidenceViewSet.as_view({"get": action}),
            {"form": form},
            name=f"{name}-{form}",
        )
        for place, action, name in (
            (_request, "summary", "request-summary"),
            (_capture, "capture_summary", "capture-summary"),
        )
        for form in ("json", "md", "csv")
    ),
    path(
        f"{_capture}<str:name>",
        ProfileRequestViewSet.as_view({"get": "file"}),
        name="capture-file",
    ),
]
