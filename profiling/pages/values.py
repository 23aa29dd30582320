"""Values as people read them: as ncu shows them, and in words where there is none."""

from __future__ import annotations

from typing import Any

from profiling.reports import export
from profiling.reports.details import MetricState, MetricValue

# Of the text that a kernel or the evaluator printed, a page shows the end.
LOG_CHARS = 20_000
_WORDS = {
    MetricState.ABSENT: "not collected",
    MetricState.NO_VALUE: "no value",
    MetricState.NAN: "not a number",
    MetricState.INF: "infinite",
}
_FLOPS = (("Tflop/s", 1e12), ("Gflop/s", 1e9), ("Mflop/s", 1e6), ("flop/s", 1.0))


def shown(value: MetricValue, unit: str = "") -> str:
    if value is None:
        return "no value"
    text, unit = export.shown(value, unit)
    return f"{text} {unit}".rstrip()


def flops_shown(per_second: float) -> str:
    name, size = next((each for each in _FLOPS if per_second >= each[1]), _FLOPS[-1])
    return f"{per_second / size:,.2f} {name}"


def shown_metric(metric: dict[str, Any] | None) -> str:
    """Of `Capture.kernels`."""
    if metric is None or metric["state"] != MetricState.OK:
        return state_shown(metric["state"] if metric else MetricState.ABSENT)
    return shown(metric["value"], metric["unit"])


def state_shown(state: str) -> str:
    return _WORDS.get(MetricState(state), "no value")


def dimensions(sizes: tuple[int, ...] | list[int] | None) -> str:
    return " x ".join(map(str, sizes)) if sizes else "not said"


def end_of(text: str) -> str:
    left_out = len(text) - LOG_CHARS
    return text if left_out <= 0 else f"({left_out:,} characters left out)\n{text[-LOG_CHARS:]}"
