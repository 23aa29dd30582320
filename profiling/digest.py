"""A summary (`evidence.capture_summary`) in words and tables: Markdown and CSV.

Names are a stranger's text: in Markdown they stand in code, in CSV they can be no formula.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from profiling.evidence import ABOUT_DURATIONS, told_settings
from profiling.reports.csv_safe import row
from profiling.reports.export import shown
from profiling.reports.summary import NUMBERS, words
from profiling.reports.text import storable

KERNELS_SHOWN = 20
REASONS_SHOWN = 10
NAME_CHARS, MESSAGE_CHARS, SPEC_CHARS = 120, 400, 400
# A request may have many captures; what a chat or an agent gets stays readable.
MARKDOWN_CHARS = 60_000

_UNITS = {"duration_ns": "ns"}
_TABLE = (
    "duration_ns",
    "time_share_pct",
    "compute_pct",
    "memory_pct",
    "occupancy_pct",
    "l2_hit_pct",
)
_TITLES = ("Duration", "Time", "Compute", "Memory", "Occupancy", "L2 hit")
CSV_COLUMNS = (
    *("capture", "spec", "verdict", "launch", "kernel", "demangled", "grid", "block", "failed"),
    *(*NUMBERS, "time_share_pct", "bound", "bound_because", "top_stall", "top_stall_pct"),
    *("top_rule", "top_rule_speedup_pct"),
)


def markdown(summary: dict[str, Any]) -> str:
    """Of a request."""
    request = summary["request"]
    lines = [
        f"# Profile of {_plain(request['leaderboard'])} on {_plain(request['gpu'])}",
        "",
        f"Request {request['id']}: {request['verdict'] or 'not judged'}.",
    ]
    if request["origin"]:
        lines.append(f"**{_plain(request['origin'])}: not measured on a GPU for this request.**")
    for capture in summary["captures"]:
        lines += ["", *capture_lines(capture)]
    lines += ["", f"{ABOUT_DURATIONS}"]
    return bounded("\n".join(lines) + "\n")


def capture_markdown(capture: dict[str, Any]) -> str:
    return bounded("\n".join([*capture_lines(capture), "", ABOUT_DURATIONS]) + "\n")


def bounded(text: str) -> str:
    if len(text) <= MARKDOWN_CHARS:
        return text
    return (
        f"{text[:MARKDOWN_CHARS].rpartition(chr(10))[0]}\n\nThe rest is in the summary as JSON.\n"
    )


def capture_lines(capture: dict[str, Any]) -> list[str]:
    """The heading, the verdict and what was measured with; then where to look first."""
    lines = [f"## {capture['key']}: {_plain(capture['spec'], SPEC_CHARS)}", ""]
    if capture["failure"]:
        lines.append(f"- no capture: {_plain(capture['failure']['message'], MESSAGE_CHARS)}")
    if capture["verdict"]:
        lines.append(f"- verdict: **{capture['verdict']}**")
    said = [each["message"] for each in capture["reasons"]]
    said += [note["message"] for note in capture["notes"] if note["message"] not in said]
    lines += [f"- {_plain(message, MESSAGE_CHARS)}" for message in said[:REASONS_SHOWN]]
    if capture["passed"] is False:
        lines.append("- the evaluator's check failed: what was measured computes a wrong result")
    if capture["report"] is None:
        return lines
    lines += [*_provenance(capture), *first_look(capture["report"])]
    return lines + list(_kernel_table(capture["report"]))


def first_look(report: dict[str, Any]) -> Iterator[str]:
    """What to look at first: the slowest launch, what bounds it, stalls, rules, hot spots."""
    if report["look_first"] is None:
        return
    launch = report["launches"][report["look_first"]]
    yield ""
    yield "### What to look at first"
    yield ""
    share = launch["time_share_pct"]
    took = f"takes {_shown(launch, 'duration_ns')}"
    yield (
        f"- {_code(launch['name'])} (launch {launch['index']}) {took}, {share:.0f} % of the time"
    )
    yield f"- bound by **{launch['bound']}**: {_plain(launch['bound_because'], MESSAGE_CHARS)}"
    if launch["stalls"]:
        told = (f"{words(each['reason'])} {each['share_pct']:.0f} %" for each in launch["stalls"])
        yield f"- warps wait for: {', '.join(told)}"
    for finding in launch["findings"]:
        yield f"- {_finding(finding)}"
    for spot in launch["hot_spots"][:3]:
        yield f"- hot: {_spot(spot)}"


def csv_lines(captures: list[dict[str, Any]]) -> Iterator[str]:
    """A row per launch; a capture without launches has a row of its own."""
    yield row(CSV_COLUMNS)
    for capture in captures:
        place = (capture["key"], capture["spec"], capture["verdict"])
        launches = capture["report"]["launches"] if capture["report"] else []
        for launch in launches:
            yield row((*place, *_csv_fields(launch)))
        if not launches:
            yield row((*place, *([""] * (len(CSV_COLUMNS) - len(place)))))


def _csv_fields(launch: dict[str, Any]) -> tuple[Any, ...]:
    stall = launch["stalls"][0] if launch["stalls"] else {"reason": "", "share_pct": None}
    rule = launch["findings"][0] if launch["findings"] else {"rule": "", "speedup": None}
    return (
        *(launch["index"], launch["name"], launch["demangled"]),
        *(size(launch["grid"]), size(launch["block"]), launch["failed"]),
        *(launch["numbers"][key] for key in NUMBERS),
        *(launch["time_share_pct"], launch["bound"], launch["bound_because"]),
        *(stall["reason"], stall["share_pct"], rule["rule"], rule["speedup"]),
    )


def size(of: list[int] | None) -> str:
    return " x ".join(map(str, of)) if of else "n/a"


def _provenance(capture: dict[str, Any]) -> Iterator[str]:
    used, report = capture["measured_with"], capture["report"]
    yield (
        f"- Nsight Compute {used['ncu_version'] or 'of unknown version'}, "
        f"{used['gpu'] or 'unknown GPU'}, driver {used['driver'] or 'unknown'}, "
        f"CUDA {used['cuda'] or 'unknown'}; {told_settings(used['settings'])}"
    )
    passes = [each["numbers"]["passes"] for each in report["launches"]]
    most = max((each for each in passes if each is not None), default=None)
    yield (
        f"- {report['launch_count']} kernel launches, "
        f"{'?' if most is None else f'{most:.0f}'} replay passes"
    )
    if capture["archive"]:
        opens = f"; opens with {capture['opens_with']}" if capture["opens_with"] else ""
        yield f"- archive {capture['archive']['url']}, sha256 {capture['archive']['sha256']}{opens}"


def _kernel_table(report: dict[str, Any]) -> Iterator[str]:
    launches = report["launches"]
    if not launches:
        return
    yield ""
    yield f"| # | Kernel | Grid | Block | {' | '.join(_TITLES)} | Bound by |"
    yield f"| --- | --- | --- | --- | {' | '.join('---:' for _ in _TITLES)} | --- |"
    slowest = sorted(launches, key=lambda each: -(each["numbers"]["duration_ns"] or 0))
    for launch in slowest[:KERNELS_SHOWN]:
        values = " | ".join(_shown(launch, key) for key in _TABLE)
        sizes = f"{size(launch['grid'])} | {size(launch['block'])}"
        yield f"| {launch['index']} | {_code(launch['name'])} | {sizes} | {values} | {launch['bound']} |"
    if report["launch_count"] > KERNELS_SHOWN:
        yield ""
        yield f"{report['launch_count'] - KERNELS_SHOWN} more launches are in the report."


def _shown(launch: dict[str, Any], key: str) -> str:
    value = launch["time_share_pct"] if key == "time_share_pct" else launch["numbers"][key]
    if value is None:
        return f"n/a ({launch['unavailable'].get(key, 'absent')})"
    text, unit = shown(float(value), _UNITS.get(key, "%" if key.endswith("_pct") else ""))
    return f"{text} {unit}".rstrip()


def _finding(finding: dict[str, Any]) -> str:
    name = finding["title"] or finding["name"]
    estimate = ""
    if finding["speedup"] is not None:
        local = "local " if finding["speedup_kind"] == "local" else ""
        estimate = f" (estimated {local}speed-up {finding['speedup']:.1f} %)"
    return f"{_plain(name)}{estimate}: {_plain(finding['message'], MESSAGE_CHARS)}"


def _spot(spot: dict[str, Any]) -> str:
    where = f"{spot['file']}:{spot['line']} " if spot["line"] else f"+{spot['offset']:#x} "
    text = spot["source"] or spot["sass"]
    count = (
        f"{spot['samples']:,} samples"
        if spot["samples"] is not None
        else f"{spot['instructions'] or 0:,} executed"
    )
    return f"{_plain(where)}{_code(text) if text else ''} {count}".replace("  ", " ")


def _code(text: str) -> str:
    """As code, which no name can end: a table's bars and backticks are others."""
    return f"`{storable(text, NAME_CHARS).replace('`', chr(0x2BB)).replace('|', chr(0x2502))}`"


def _plain(text: str, chars: int = NAME_CHARS) -> str:
    """No markup of a stranger: links, tags, tables and headings stay text."""
    cut = storable(" ".join(text.split()), chars)
    return "".join(f"\\{char}" if char in "\\`*[]<>|#" else char for char in cut)
