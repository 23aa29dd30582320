"""The summary of a request and of a capture, made from what was stored: docs/evidence.md."""

from __future__ import annotations

import re
from typing import Any

from profiling.addresses import archive_url
from profiling.models import Capture, CaptureDetails, ProfileRequest
from profiling.reports.details import DetailsError, ReportDetails, unpack
from profiling.reports.summary import SUMMARY_SCHEMA, ReportSummary, summarise
from runners.gpu import wire

ABOUT_DURATIONS = (
    "Durations are for comparing captures that were made with the same settings, and not for the "
    "score: the profiler replays each launch, one after the other, under its own cache and clock "
    "control."
)


def details_of(capture: Capture, *, launch: int | None = None) -> ReportDetails | None:
    """One query unless `details` was selected with it. None without a good report.

    With `launch`, only the one of that index is among the launches, which is quicker.
    """
    try:
        stored = capture.details
    except CaptureDetails.DoesNotExist:
        return None
    try:
        return unpack(bytes(stored.content), stored.schema, launch=launch)
    except DetailsError:
        # Of another schema: `reread_reports` makes it anew from the archive.
        return None


def summary_of(capture: Capture) -> ReportSummary | None:
    details = details_of(capture)
    return summarise(details) if details else None


def request_summary(request: ProfileRequest, captures: list[Capture]) -> dict[str, Any]:
    """All captures with their launches, in the stable form of `SUMMARY_SCHEMA`."""
    return {
        "schema": SUMMARY_SCHEMA,
        "request": {
            "id": str(request.pk),
            "leaderboard": request.leaderboard_name,
            "gpu": request.gpu,
            "verdict": request.verdict,
            "origin": request.result_origin,
            "created_at": request.created_at.isoformat(),
            "source_sha256": request.source_sha256,
            "config_sha256": request.config_sha256,
            "capture_options": request.capture_options,
            "ncu_version_wanted": request.ncu_version_wanted,
            "task_revision": request.revision.sha256 if request.revision else "",
            "task_commit": request.revision.commit if request.revision else "",
        },
        "about_durations": ABOUT_DURATIONS,
        "captures": [capture_summary(capture) for capture in captures],
    }


def capture_summary(capture: Capture) -> dict[str, Any]:
    summary, stored = summary_of(capture), capture.artifact
    return {
        "schema": SUMMARY_SCHEMA,
        "key": capture.key,
        "benchmark_index": capture.benchmark_index,
        "spec": capture.spec,
        "status": capture.status,
        "passed": capture.passed,
        "failure": {"kind": capture.failure_kind, "message": capture.failure_message}
        if capture.failure_kind
        else None,
        "verdict": capture.verdict,
        "reasons": capture.verdict_reasons,
        "notes": capture.notes,
        "measured_with": {
            "ncu_version": capture.ncu_version,
            "gpu": capture.gpu_name,
            "compute_capability": capture.session.get("compute_capability", ""),
            "driver": capture.driver_version,
            "cuda": capture.cuda_version,
            "settings": capture.session.get("settings", {}),
        },
        "opens_with": opens_with(capture),
        "archive": {"url": archive_url(capture), "size": stored.size, "sha256": stored.sha256}
        if stored
        else None,
        "report": wire.encode(summary) if summary else None,
    }


def opens_with(capture: Capture) -> str:
    """The viewer that opens the file (FR-23); an older one refuses it."""
    found = re.match(r"\d+\.\d+(?:\.\d+)?", capture.ncu_version)
    return f"Nsight Compute {found[0]} or newer" if found else ""


def settings_words(capture: Capture) -> str:
    """How it was captured, as the report knows it (FR-43)."""
    return told_settings(capture.session.get("settings", {}))


def told_settings(told: dict[str, Any]) -> str:
    if not told.get("told_by"):
        return "clock control, cache control and replay mode are not told by the report"
    return ", ".join(
        f"{option.replace('_', ' ')} {told.get(option) or 'unknown'}"
        for option in ("clock_control", "cache_control", "replay_mode")
    )
