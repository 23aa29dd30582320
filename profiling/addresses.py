"""Where clients find a request and its files: absolute addresses, built from PUBLIC_URL alone."""

from __future__ import annotations

from django.conf import settings
from django.urls import reverse

from profiling.models import Capture, ProfileRequest

# The files inside a capture's archive, by the last part of their address.
ARCHIVE_FILES = {
    "report": "profile.ncu-rep",
    "details.txt": "ncu-details.txt",
    "details.csv": "ncu-details.csv",
}


def _absolute(name: str, *args: object) -> str:
    return f"{settings.PUBLIC_URL}{reverse(name, args=args)}"


def request_urls(request: ProfileRequest) -> dict[str, str]:
    """`self`, `stream`, `cancel`, `rerun` and `summary` of an accepted request."""
    return {
        "self": _absolute("profile-request", request.pk),
        "stream": _absolute("profile-request-stream", request.pk),
        "cancel": _absolute("profile-request-cancel", request.pk),
        "rerun": _absolute("profile-request-rerun", request.pk),
        "summary": _absolute("request-summary-json", request.pk),
    }


def archive_url(capture: Capture) -> str:
    return _absolute("capture-archive", capture.request_id, capture.benchmark_index)


def summary_urls(capture: Capture) -> dict[str, str]:
    """Its summary by form: json, md and csv."""
    place = (capture.request_id, capture.benchmark_index)
    return {form: _absolute(f"capture-summary-{form}", *place) for form in ("json", "md", "csv")}


def file_urls(capture: Capture) -> dict[str, str]:
    """The files inside the archive, by `ARCHIVE_FILES`."""
    place = (capture.request_id, capture.benchmark_index)
    return {name: _absolute("capture-file", *place, name) for name in ARCHIVE_FILES}


def file_name(request: ProfileRequest, capture: Capture, ending: str) -> str:
    """A name for somebody's disk that no other capture has (FR-20)."""
    return f"{request.leaderboard_name}-{request.gpu}-{capture.key}-{request.pk}{ending}"
