"""What was asked beside what the report says was done, difference by difference (FR-23)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from profiling.models import Capture, ProfileRequest
from profiling.reports.verdict import Asked, Code

NOT_SAID = "not said"
ANY = "any"


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    what: str
    asked: str
    measured: str
    differs: bool = False


def compare_with_asked(request: ProfileRequest, capture: Capture) -> list[Compared]:
    """The verdict's reasons say what differs: the page and the verdict never disagree."""
    codes = {reason["code"] for reason in capture.verdict_reasons}
    settings: dict[str, Any] = capture.session.get("settings", {})
    spec = request.benchmark_specs.get(str(capture.benchmark_index), {})
    asked = {f"{key}: {value}" for key, value in spec.items()}
    as_asked = asked == set(capture.spec.split("; "))
    return [
        Compared(
            what="Benchmark",
            # A database may have put the keys of the specification into another order.
            asked=capture.spec if as_asked else "; ".join(sorted(asked)),
            measured=capture.spec,
            differs=not as_asked,
        ),
        Compared(
            what="GPU",
            asked=request.gpu,
            measured=_gpu(capture),
            differs=Code.GPU_DIFFERS in codes,
        ),
        Compared(
            what="Nsight Compute",
            asked=request.ncu_version_wanted or ANY,
            measured=capture.ncu_version or NOT_SAID,
            differs=Code.PROFILER_VERSION_DIFFERS in codes,
        ),
        Compared(what="CUDA", asked=ANY, measured=capture.cuda_version or NOT_SAID),
        Compared(what="Driver", asked=ANY, measured=capture.driver_version or NOT_SAID),
        *_options(request, settings, differ=Code.OPTIONS_DIFFER in codes),
        Compared(
            what="Launches",
            asked=f"at most {request.ncu_launch_count}"
            if request.ncu_launch_count is not None
            else "all up to the limit",
            measured=NOT_SAID if capture.launch_count is None else f"{capture.launch_count:,}",
            differs=Code.LAUNCH_LIMIT_REACHED in codes,
        ),
        Compared(
            what="Sections",
            asked="full set",
            measured=settings.get("set")
            or ", ".join(settings.get("sections") or settings.get("metrics") or ())
            or NOT_SAID,
            differs=Code.SECTIONS_MISSING in codes,
        ),
    ]


def _gpu(capture: Capture) -> str:
    capability = capture.session.get("compute_capability")
    said = capture.gpu_name or NOT_SAID
    return f"{said}, compute capability {capability}" if capability else said


def _options(request: ProfileRequest, settings: dict[str, Any], *, differ: bool) -> list[Compared]:
    usual = Asked(gpu=request.gpu, ncu_version="")
    rows = [
        ("Kernel filter", request.ncu_kernel_name or "", "kernel_name", "every kernel"),
        ("Clock control", usual.clock_control, "clock_control", NOT_SAID),
        ("Cache control", usual.cache_control, "cache_control", NOT_SAID),
        ("Replay mode", usual.replay_mode, "replay_mode", NOT_SAID),
    ]
    told = bool(settings.get("told_by"))
    return [
        Compared(
            what=what,
            asked=asked or empty,
            measured=(settings.get(name) or empty) if told else NOT_SAID,
            differs=differ and told and settings.get(name, "") != asked,
        )
        for what, asked, name, empty in rows
    ]
