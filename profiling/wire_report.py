"""What a result says about itself in words and facts: for people, manifests and status lines."""

from __future__ import annotations

from typing import Any

from leaderboards.stream_use import warn_of_stream_use
from profiling.addresses import archive_url
from profiling.digest import bounded, capture_lines
from profiling.evidence import ABOUT_DURATIONS, capture_summary, opens_with
from profiling.models import Capture, ProfileRequest
from profiling.reports.text import printable

_VERDICT_WORDS: dict[str, str] = {
    ProfileRequest.Verdict.COMPLETE: "all captures are complete",
    ProfileRequest.Verdict.PARTIAL: "partial: not every capture is there and complete",
    ProfileRequest.Verdict.DEGRADED: "degraded: not all was measured as it was asked for",
    ProfileRequest.Verdict.FAILED: "no capture was made",
}


def capture_facts(capture: Capture) -> dict[str, Any]:
    """Read from inside the report, and never from what was asked for; for the manifest."""
    artifact = capture.artifact
    return {
        "spec": capture.spec,
        "status": capture.status,
        "failure_kind": capture.failure_kind,
        "passed": capture.passed,
        "verdict": capture.verdict,
        "verdict_reasons": capture.verdict_reasons,
        "notes": capture.notes,
        "settings": capture.session.get("settings", {}),
        "opens_with": opens_with(capture),
        "ncu_version": capture.ncu_version,
        "gpu": capture.gpu_name,
        "driver": capture.driver_version,
        "cuda": capture.cuda_version,
        "launch_count": capture.launch_count,
        "replay_passes": capture.replay_passes,
        "size": artifact.size if artifact else None,
        "sha256": artifact.sha256 if artifact else None,
        "download_url": archive_url(capture) if artifact else None,
    }


def messages_of(request: ProfileRequest, captures: list[Capture]) -> tuple[str, ...]:
    """Status messages before the result: the CLI's reader sees these and nothing of `reports`."""
    said = []
    if origin := _origin_words(request):
        said.append(origin)
    if warning := _stream_warning(request):
        said.append(warning)
    for capture in captures:
        said += _about(capture)
    if request.verdict in (ProfileRequest.Verdict.PARTIAL, ProfileRequest.Verdict.DEGRADED):
        said.append(f"the profile is {_VERDICT_WORDS[request.verdict]}")
    return tuple(printable(each) for each in said)


def _about(capture: Capture) -> list[str]:
    said = []
    if capture.status == Capture.Status.FAILED:
        said.append(f"{capture.key}: no capture: {capture.failure_message}")
    if (capture.run or {}).get("passed") is False:
        verdict = "failed" if capture.passed is False else "gave no verdict"
        said.append(f"{capture.key}: the evaluator's check {verdict} for {capture.spec}")
    return said + [f"{capture.key}: {note['message']}" for note in capture.notes]


def _origin_words(request: ProfileRequest) -> str:
    if not request.result_origin:
        return ""
    return f"these captures are {request.result_origin}, not measured on a GPU just now"


def _stream_warning(request: ProfileRequest) -> str:
    """Work on a stream of its own is not refused, and it is said (FR-17)."""
    assert request.submission is not None
    source = request.submission.source
    return "" if source.purged_at else warn_of_stream_use(request.file_name, source.text)


def describe_result(request: ProfileRequest, captures: list[Capture]) -> str:
    """Markdown for `reports`."""
    lines = [
        f"# Profile of {request.leaderboard_name} on {request.gpu}",
        "",
        f"Request {request.pk}: {_VERDICT_WORDS.get(request.verdict, request.verdict)}.",
    ]
    if origin := _origin_words(request):
        lines.append(f"**{origin.capitalize()}.**")
    if warning := _stream_warning(request):
        lines.append(warning)
    for capture in captures:
        lines += ["", *capture_lines(capture_summary(capture))]
    lines += ["", ABOUT_DURATIONS]
    return bounded("\n".join(lines) + "\n")
