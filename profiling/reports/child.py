"""Reads one report with NVIDIA's library and prints what it found as one JSON document.

A program of its own, since a damaged report can crash the library and since its memory is never
freed; run it with `limited.py`. It never asks for source files: a damaged report was seen to
crash there. Of NaN and infinity only the state is printed, as JSON has no number for them.

    python -I child.py REPORT
"""

from __future__ import annotations

import json
import math
import os
import re
import sys
from collections import Counter
from typing import Any

# Metric and how it is shown: ncu-report-format.md, "Metric names worth knowing".
KEY_METRICS = {
    "gpu__time_duration.sum": "Duration",
    "sm__warps_active.avg.pct_of_peak_sustained_active": "Achieved occupancy",
    "sm__throughput.avg.pct_of_peak_sustained_elapsed": "Compute (SM) throughput",
    "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed": "Memory throughput",
    "lts__t_sector_hit_rate.pct": "L2 hit rate",
    "smsp__inst_executed.sum": "Executed instructions",
    "profiler__replayer_passes": "Replay passes",
    "launch__grid_size": "Grid",
    "launch__block_size": "Block",
    "device__attribute_display_name": "GPU",
}
LAUNCHES_KEPT = 200
UNAVAILABLE_KEPT = 500
NAME_CHARS = 1_000  # of a kernel or metric name, and of a value that is text

# No database takes NUL or half of a surrogate pair, and no terminal should get an escape.
UNFIT = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")

Json = dict[str, Any]


def read(path: str) -> Json:
    """All launches are looked at; the first `LAUNCHES_KEPT` of them are told one by one."""
    import ncu_report  # a large library, for this process alone

    launches: list[Json] = []
    total = nameless = 0
    unavailable: Counter[tuple[str, str]] = Counter()
    context = ncu_report.load_report(path)
    for range_index in range(context.num_ranges()):
        launch_range = context.range_by_idx(range_index)
        for index in range(launch_range.num_actions()):
            launch, missing = _launch(launch_range.action_by_idx(index))
            total += 1
            nameless += not launch["name"]
            unavailable.update(missing)
            if total <= LAUNCHES_KEPT:
                launches.append(launch)
    return {
        "launch_count": total,
        "nameless": nameless,
        "launches": launches,
        "unavailable_count": len(unavailable),
        "unavailable": [
            {"name": storable(name), "state": state, "launches": count}
            for (name, state), count in sorted(unavailable.items())[:UNAVAILABLE_KEPT]
        ],
    }


def storable(text: str, chars: int = NAME_CHARS) -> str:
    """`text` with a mark for each character that is unfit, and cut, which "…" at its end says."""
    text = text if len(text) <= chars else text[: chars - 1] + "…"
    return UNFIT.sub("\N{REPLACEMENT CHARACTER}", text)


def _launch(action: Any) -> tuple[Json, list[tuple[str, str]]]:
    """A launch, and the metrics that it lists without a usable value: name and state."""
    names = action.metric_names()
    states = {name: _metric(action, name)["state"] for name in names}
    missing = [(name, state) for name, state in states.items() if state != "ok"]
    counts = Counter(state for _, state in missing)
    launch = {
        "name": storable(action.name() or ""),
        "demangled": storable(action.name(action.NameBase_DEMANGLED) or ""),
        "grid": _dimensions(action, "grid"),
        "block": _dimensions(action, "block"),
        "metrics": {name: _metric(action, name) for name in KEY_METRICS},
        "metric_count": len(names),
        "nan_count": counts["nan"],
        "inf_count": counts["inf"],
        "no_value_count": counts["no_value"],
    }
    return launch, missing


def _metric(action: Any, name: str) -> Json:
    """`state` is ok, absent (not collected), no_value (listed without one), nan or inf."""
    try:
        metric = action.metric_by_name(name)
    except TypeError:  # a damaged name that is no UTF-8: listed, yet nobody can ask for it
        return {"state": "no_value", "value": None, "unit": ""}
    if metric is None:
        return {"state": "absent", "value": None, "unit": ""}
    value = metric.value()
    state = "ok"
    if value is None:
        state = "no_value"
    elif isinstance(value, float) and not math.isfinite(value):
        state, value = ("nan" if math.isnan(value) else "inf"), None
    elif isinstance(value, str):
        value = storable(value)
    return {"state": state, "value": value, "unit": storable(metric.unit() or "")}


def _dimensions(action: Any, kind: str) -> list[int] | None:
    """x, y and z; None for a launch that failed, which does not say them."""
    values = [_metric(action, f"launch__{kind}_dim_{axis}")["value"] for axis in "xyz"]
    if any(isinstance(value, str) or value is None for value in values):
        return None
    return [int(value) for value in values]


def main() -> None:
    # The library may print; the document must stay alone on its way out.
    document = os.fdopen(os.dup(1), "w", encoding="ascii")
    os.dup2(2, 1)
    with document:
        try:
            found = read(sys.argv[1])
        except Exception as error:  # noqa: BLE001  whatever it is, the parent shall hear of it
            said = f"{type(error).__name__}: {error}".replace(sys.argv[1], "the report")
            found = {"refused": storable(said, 500)}
        json.dump(found, document, allow_nan=False)
    # The library is not trusted to take itself down either.
    os._exit(0)


if __name__ == "__main__":
    main()
