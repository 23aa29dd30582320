"""One launch of a report as NVIDIA's library tells it, in the form of `details.LaunchDetails`.

Runs in the child process only, and imports nothing of Django. It never asks for source files: a
damaged report was seen to crash there. Nor for SASS, which costs a disassembly (source_child.py).
"""

from __future__ import annotations

import math
import re
from collections import Counter
from typing import Any

from profiling.reports.hot_spots import hottest
from profiling.reports.text import MESSAGE_CHARS, message, shareable, storable

Json = dict[str, Any]

FINDINGS_KEPT = 200  # of a launch, as are the next
SECTIONS_KEPT = 200
DOMAINS_KEPT, RANGES_KEPT = 20, 100

# Names begin with the unit of the GPU that counts. "__maximum_" is worked out from the launch, and
# these are no hardware counters, or of links that a GPU may lack, where nobody misses them.
_COUNTER = re.compile(r"[a-z][a-z0-9]*__(?!maximum_)")
_NO_COUNTER = (
    *("launch__", "device__", "profiler__", "derived__", "numa__"),
    *("ctc__", "c2clink__", "nvlink__", "nvlrx__", "nvltx__", "pcie__"),
)
_MESSAGE_KINDS = {0: "INF", 1: "INF", 2: "OPT", 3: "WRN", 4: "ERR"}
_SPEEDUP_KINDS = {1: "local", 2: "global"}
_WORKLOADS = {0: "kernel", 1: "range", 2: "cmdlist", 3: "graph"}


class Tables:
    """What all launches of a report share, filled while they are read."""

    def __init__(self, values_left: int) -> None:
        self.units: dict[str, str] = {}
        self.sections: dict[str, Json] = {}
        self.unavailable: Counter[tuple[str, str]] = Counter()
        self.values_left = values_left
        self.left_out = 0


def read_launch(action: Any, place: tuple[int, int], tables: Tables, *, keep: bool) -> Json:
    """All of a launch; with `keep` false only what counting needs. `place` is range and index."""
    metrics: dict[str, Any] = {}
    states: dict[str, str] = {}
    counts: Counter[str] = Counter()
    names = action.metric_names()
    for raw in names:
        state, value, unit = read_metric(action, raw)
        counts[state] += 1
        name = storable(raw)
        if is_counter(name):
            counts["counters"] += 1
            counts["unusable"] += state != "ok"
        if state != "ok":
            tables.unavailable[name, state] += 1
        if not keep:
            continue
        if tables.values_left <= 0:
            tables.left_out += 1
            continue
        tables.values_left -= 1
        metrics[name] = value
        if state != "ok":
            states[name] = state
        if unit:
            tables.units.setdefault(name, unit)
    rules = action.rule_results() if keep else ()
    grid = dimensions(action, "grid")
    # A launch that failed may keep a counter that needs no launch.
    dead = 0 < counts["counters"] * 9 <= counts["unusable"] * 10
    return {
        "range": place[0],
        "index": place[1],
        "name": shareable(action.name() or ""),
        "demangled": shareable(action.name(action.NameBase_DEMANGLED) or ""),
        "mangled": shareable(action.name(action.NameBase_MANGLED) or ""),
        "workload": _WORKLOADS.get(action.workload_type(), "other"),
        "grid": grid,
        "block": dimensions(action, "block"),
        "failed": grid is None and dead,
        "metric_count": len(names),
        "nan_count": counts["nan"],
        "inf_count": counts["inf"],
        "no_value_count": counts["no_value"],
        "counters": counts["counters"],
        "counters_unusable": counts["unusable"],
        "metrics": metrics,
        "states": states,
        "sections": _sections(action, tables) if keep else [],
        "rule_count": len(rules),
        "findings": [_finding(rule) for rule in rules[:FINDINGS_KEPT] if rule.has_rule_message()],
        "nvtx": _nvtx(action) if keep else [],
        "hot_spots": hottest(action) if keep else [],
    }


def read_metric(action: Any, name: str) -> tuple[str, Any, str]:
    """State, value (None unless the state is ok) and unit. See `facts.MetricState`."""
    try:
        metric = action.metric_by_name(name)
    except TypeError:  # a damaged name that is no UTF-8: listed, yet nobody can ask for it
        return "no_value", None, ""
    if metric is None:
        return "absent", None, ""
    value, unit = metric.value(), storable(metric.unit() or "")
    if value is None:
        return "no_value", None, unit
    if isinstance(value, float) and not math.isfinite(value):
        return ("nan" if math.isnan(value) else "inf"), None, unit
    return "ok", shareable(value) if isinstance(value, str) else value, unit


def is_counter(name: str) -> bool:
    return _COUNTER.match(name) is not None and not name.startswith(_NO_COUNTER)


def dimensions(action: Any, kind: str) -> list[int] | None:
    """x, y and z; None for a launch that failed, which does not say them."""
    values = [read_metric(action, f"launch__{kind}_dim_{axis}")[1] for axis in "xyz"]
    if any(isinstance(value, str) or value is None for value in values):
        return None
    return [int(value) for value in values]


def _sections(action: Any, tables: Tables) -> list[str]:
    found = []
    for section in action.sections()[:SECTIONS_KEPT]:
        identifier = storable(section.identifier() or "", 200)
        if identifier not in tables.sections and len(tables.sections) >= SECTIONS_KEPT:
            continue
        found.append(identifier)
        told = tables.sections.setdefault(
            identifier,
            {
                "identifier": identifier,
                "name": storable(section.name() or "", 200),
                "order": int(section.order()),
                "rows": {},
            },
        )
        for metric in section.header_metrics():
            told["rows"].setdefault(storable(metric.name()), storable(metric.label() or "", 200))
    return found


def _finding(result: Any) -> Json:
    said = result.rule_message()
    speedup, kind = None, ""
    if result.has_speedup_estimation():
        estimated = result.speedup_estimation()
        if math.isfinite(estimated["speedup"]):
            speedup = float(estimated["speedup"])
            kind = _SPEEDUP_KINDS.get(int(estimated["type"]), "")
    return {
        "section": storable(result.section_identifier() or "", 200),
        "rule": storable(result.rule_identifier() or "", 200),
        "name": storable(result.name() or "", 200),
        "kind": _MESSAGE_KINDS.get(int(said["type"]), "INF"),
        "title": shareable(said["title"] or "", 200),
        "message": message((said["message"] or "")[:MESSAGE_CHARS]),
        "speedup": speedup,
        "speedup_kind": kind,
        "focus": [_focus(each) for each in result.focus_metrics()[:10]],
    }


def _focus(each: Json) -> Json:
    value = each["value"]
    return {
        "metric": storable(each["name"] or ""),
        "value": float(value) if math.isfinite(value) else None,
        "info": shareable(each["info"] or ""),
    }


def _nvtx(action: Any) -> list[Json]:
    state = action.nvtx_state()
    if state is None:
        return []
    domains = (state.domain_by_id(number) for number in tuple(state.domains())[:DOMAINS_KEPT])
    return [
        {
            "name": shareable(domain.name() or "", 200),
            "push_pop": [shareable(name) for name in domain.push_pop_ranges()[:RANGES_KEPT]],
            "start_end": [shareable(name) for name in domain.start_end_ranges()[:RANGES_KEPT]],
        }
        for domain in domains
        if domain is not None
    ]
