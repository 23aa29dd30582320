"""Two captures side by side, and whether what differs is the kernel alone (FR-23, FR-43)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from profiling.evidence import details_of
from profiling.models import Capture
from profiling.reports.compare import compare
from runners.gpu import wire

COMPARISON_SCHEMA = 1
_OPTIONS = ("clock_control", "cache_control", "replay_mode")


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """Something beside the kernel that is not the same. `matters`: values can't be compared."""

    what: str
    base: str
    other: str
    matters: bool


def compare_captures(base: Capture, other: Capture, *, all_metrics: bool = False) -> dict[str, Any]:
    """Both with `request__revision`, `artifact` and `details`. None of it is refused: it is told."""
    differences = differences_of(base, other)
    one, two = details_of(base), details_of(other)
    return {
        "schema": COMPARISON_SCHEMA,
        "base": _named(base),
        "other": _named(other),
        "comparable": not any(each.matters for each in differences),
        "differences": wire.encode(differences),
        "problem": _problem(one is None, two is None),
        "launches": wire.encode(compare(one, two, all_metrics=all_metrics)) if one and two else [],
    }


def differences_of(base: Capture, other: Capture) -> list[Difference]:
    """What was not the same; the sources of both are expected to differ, and are told too."""
    one, two = _provenance(base), _provenance(other)
    found = [
        Difference(what=what, base=one[what][0], other=two[what][0], matters=one[what][1])
        for what in one
        if one[what][0] != two[what][0]
    ]
    # Of a degraded capture something is known to be wrong: whatever the other is worth.
    if Capture.Verdict.DEGRADED in (base.verdict, other.verdict):
        found.append(
            Difference(what="verdict", base=base.verdict, other=other.verdict, matters=True)
        )
    return found


def _provenance(capture: Capture) -> dict[str, tuple[str, bool]]:
    """By what it is called: the value, and whether a difference in it matters."""
    request, told = capture.request, capture.session.get("settings", {})
    revision = request.revision
    return {
        "task revision": (revision.sha256 if revision else "", True),
        "benchmark": (capture.spec, True),
        "GPU": (capture.gpu_name, True),
        "Nsight Compute": (capture.ncu_version, True),
        **{each.replace("_", " "): (str(told.get(each) or ""), True) for each in _OPTIONS},
        "driver": (capture.driver_version, False),
        "CUDA": (capture.cuda_version, False),
        "kernel filter": (request.ncu_kernel_name or "", False),
        "measured": (request.result_origin, True),
        "source": (request.source_sha256, False),
    }


def _named(capture: Capture) -> dict[str, Any]:
    return {
        "request": str(capture.request_id),
        "key": capture.key,
        "spec": capture.spec,
        "verdict": capture.verdict,
        "gpu": capture.gpu_name,
        "ncu_version": capture.ncu_version,
        "created_at": capture.request.created_at.isoformat(),
    }


def _problem(base_missing: bool, other_missing: bool) -> str:
    missing = [side for side, lacks in (("base", base_missing), ("other", other_missing)) if lacks]
    return f"no report that could be read: {' and '.join(missing)}" if missing else ""
