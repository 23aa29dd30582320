"""Captures as tables. Names and logs are a stranger's text: templates escape all of it."""

from __future__ import annotations

import json
from dataclasses import fields
from textwrap import indent
from typing import Any

from django.template.loader import render_to_string
from django.utils.html import format_html
from django.utils.safestring import SafeString

from profiling.addresses import ARCHIVE_FILES
from profiling.models import Capture, ProfileRequest
from profiling.reports.facts import KEY_METRICS
from runners.gpu.contract import CompileResult, RunResult

KERNELS_SHOWN = 20
# So that the lists fit on a phone.
PHONE_CSS = {"all": ("profiling/lists.css",)}
# In the order in which they are defined: a jsonb column keeps none.
FIELDS = {
    name: place
    for place, name in enumerate(
        f.name for kind in (CompileResult, RunResult) for f in fields(kind)
    )
}
NOT_SAID = "not said"
# Grid and block have columns of their own, the GPU is told once for all launches.
METRICS = {
    name: label
    for name, label in KEY_METRICS.items()
    if not name.startswith(("launch__", "device__"))
}


def captures_shown(
    request: ProfileRequest, captures: list[Capture], *, kernels: int = KERNELS_SHOWN
) -> SafeString:
    """What was asked beside what was measured, the key metrics, and links to the files."""
    return render_to_string(
        "profiling/admin/captures.html",
        {
            "request": request,
            "captures": [_shown(request, capture, kernels) for capture in captures],
            "labels": list(METRICS.values()),
            "files": ARCHIVE_FILES,
        },
    )


def origin_shown(request: ProfileRequest) -> str:
    """Empty for what a GPU measured for this request."""
    if not request.result_origin:
        return ""
    return format_html("<strong>{}, not measured</strong>", request.result_origin)


def json_shown(value: Any) -> SafeString:
    return format_html("<pre>{}</pre>", json.dumps(value, indent=2, ensure_ascii=False))


def record_shown(record: dict[str, Any] | None) -> SafeString:
    """Field by field, logs as they are: nobody reads one with its line ends escaped."""
    if record is None:
        return text_shown("none")
    shown = []
    for name, value in sorted(record.items(), key=lambda item: FIELDS.get(item[0], len(FIELDS))):
        text = value if isinstance(value, str) else json.dumps(value, indent=2, ensure_ascii=False)
        shown.append(f"{name}:\n{indent(text, '    ')}" if "\n" in text else f"{name}: {text}")
    return text_shown("\n".join(shown))


def text_shown(text: str) -> SafeString:
    return format_html("<pre>{}</pre>", text)


def _shown(request: ProfileRequest, capture: Capture, kernels: int) -> dict[str, Any]:
    return {
        "row": capture,
        "compared": [
            ("Benchmark", _asked_spec(request, capture), capture.spec),
            ("GPU", request.gpu, capture.gpu_name),
            ("Nsight Compute", request.ncu_version_wanted or "any version", capture.ncu_version),
            ("Driver", "any", capture.driver_version),
            ("CUDA", "any", capture.cuda_version),
        ],
        "kernels": [_kernel(kernel) for kernel in capture.kernels[:kernels]],
        "kernels_left_out": max(0, (capture.launch_count or 0) - kernels),
    }


def _asked_spec(request: ProfileRequest, capture: Capture) -> str:
    """As it was recorded when it was asked for; a database may have put its keys in order."""
    spec = request.benchmark_specs.get(str(capture.benchmark_index), {})
    return "; ".join(f"{key}: {value}" for key, value in spec.items())


def _kernel(kernel: dict[str, Any]) -> dict[str, Any]:
    return {
        "name": kernel["name"],
        "demangled": kernel["demangled"],
        "grid": _dimensions(kernel["grid"]),
        "block": _dimensions(kernel["block"]),
        "values": [_value(kernel["metrics"].get(name)) for name in METRICS],
    }


def _dimensions(sizes: list[int] | None) -> str:
    return "x".join(map(str, sizes)) if sizes else NOT_SAID


def _value(metric: dict[str, Any] | None) -> str:
    if metric is None or metric["state"] != "ok":
        return f"unavailable ({metric['state']})" if metric else "unavailable"
    value = metric["value"]
    text = f"{value:,.6g}" if isinstance(value, float) and value < 1e6 else f"{value:,}"
    return f"{text} {metric['unit']}".rstrip()
