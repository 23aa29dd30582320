"""What a result says about itself in words and facts: for people, manifests and status lines."""

from __future__ import annotations

from typing import Any

from leaderboards.stream_use import warn_of_stream_use
from profiling.addresses import archive_url
from profiling.models import Capture, ProfileRequest

KERNELS_SHOWN = 20
DURATION = "gpu__time_duration.sum"
_VERDICT_WORDS: dict[str, str] = {
    ProfileRequest.Verdict.COMPLETE: "all captures are complete",
    ProfileRequest.Verdict.PARTIAL: "partial: not every capture is there and complete",
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
        "notes": capture.notes,
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
    if request.verdict == ProfileRequest.Verdict.PARTIAL:
        said.append(f"the profile is {_VERDICT_WORDS[ProfileRequest.Verdict.PARTIAL]}")
    return tuple(said)


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
        lines += ["", *_describe(capture)]
    return "\n".join(lines) + "\n"


def _describe(capture: Capture) -> list[str]:
    lines = [f"## {capture.key}: {capture.spec}", ""]
    lines += [f"- {said.removeprefix(f'{capture.key}: ')}" for said in _about(capture)]
    if capture.status == Capture.Status.FAILED:
        return lines
    lines += [
        f"- Nsight Compute {capture.ncu_version or 'of unknown version'}, "
        f"{capture.gpu_name or 'unknown GPU'}, driver {capture.driver_version or 'unknown'}, "
        f"CUDA {capture.cuda_version or 'unknown'}",
        f"- {capture.launch_count} kernel launches, {capture.replay_passes or '?'} replay passes",
    ]
    if capture.artifact:
        lines.append(f"- archive {archive_url(capture)}, sha256 {capture.artifact.sha256}")
    if capture.kernels:
        lines += ["", "| Kernel | Grid | Block | Duration |", "| --- | --- | --- | --- |"]
        lines += [_kernel_row(kernel) for kernel in capture.kernels[:KERNELS_SHOWN]]
    if len(capture.kernels) > KERNELS_SHOWN:
        lines.append(f"\n{len(capture.kernels) - KERNELS_SHOWN} more are in the report.")
    return lines


def _kernel_row(kernel: dict[str, Any]) -> str:
    duration = kernel["metrics"].get(DURATION, {})
    shown = f"{duration['value']} {duration['unit']}" if duration.get("state") == "ok" else "n/a"
    name = kernel["name"].replace("|", "\\|")
    return (
        f"| `{name}` | {_dimensions(kernel['grid'])} | {_dimensions(kernel['block'])} | {shown} |"
    )


def _dimensions(of: list[int] | None) -> str:
    return " x ".join(map(str, of)) if of else "n/a"
