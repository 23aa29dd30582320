"""The details page of a report as ncu prints it: text and CSV, from what was kept of the report.

Units are scaled by thousands and numbers rounded as ncu does it. What ncu fills with the process,
its number and its host stays empty: those name a machine. Kernel names are whole, where ncu leaves
namespaces out. Thousands have no separators, as with ncu in the C locale.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from profiling.reports.csv_safe import row
from profiling.reports.details import (
    Finding,
    FindingKind,
    LaunchDetails,
    MetricState,
    MetricValue,
    ReportDetails,
    Section,
)

COLUMNS = (
    *("ID", "Process ID", "Process Name", "Host Name", "Kernel Name", "Context", "Stream"),
    *("Block Size", "Grid Size", "Device", "CC", "Section Name", "Metric Name", "Metric Unit"),
    *("Metric Value", "Rule Name", "Rule Type", "Rule Description"),
    *("Estimated Speedup Type", "Estimated Speedup"),
)
NOT_THERE = "(!) n/a"
RULE_LINE = 110
RULE_WIDTH = 109
_PREFIXES = {
    "ns": ("ns", "us", "ms", "s"),
    "hz": ("hz", "Khz", "Mhz", "Ghz"),
    "byte": ("byte", "Kbyte", "Mbyte", "Gbyte", "Tbyte"),
}


def shown(value: MetricValue, unit: str, state: MetricState | None = None) -> tuple[str, str]:
    """A value and its unit as the details page has them: 49952.0, "ns" is "49.95", "us"."""
    if value is None:
        said = state if state in (MetricState.NAN, MetricState.INF) else None
        return f"(!) {said}" if said else NOT_THERE, unit
    if isinstance(value, str):
        return value, unit
    scaled, unit = _scaled(float(value), unit)
    return (f"{scaled:.0f}" if scaled.is_integer() else f"{scaled:.2f}"), unit


def details_csv(details: ReportDetails) -> Iterator[str]:
    """Lines with their ends. Rows of metrics are as short as ncu's."""
    yield row(COLUMNS)
    for launch in details.launches:
        place = _place(launch)
        for section in _sections(details, launch):
            for label, value, unit in _rows(details, section, launch):
                # ncu ends these with an empty field, and leaves out the columns of rules.
                yield row((*place, section.name, label, unit, value)).rstrip("\n") + ",\n"
            for finding in _findings(launch, section):
                yield row((*place, section.identifier, "", "", "", *_rule_columns(finding)))


def details_text(details: ReportDetails) -> Iterator[str]:
    """Lines with their ends."""
    for launch in details.launches:
        _, _, _, _, name, context, stream, block, grid, device, capability = _place(launch)
        where = f"Context {context}, Stream {stream}, Device {device}, CC {capability}"
        yield f"  {name} {grid}x{block}, {where}\n"
        for section in _sections(details, launch):
            yield f"    Section: {section.name}\n"
            yield from _table(list(_rows(details, section, launch)))
            yield from _rules(_findings(launch, section))
            yield "\n"


def _scaled(value: float, unit: str) -> tuple[float, str]:
    base, slash, per = unit.partition("/")
    names = _PREFIXES.get(base)
    if names is None:
        return value, unit
    place = 0
    while abs(value) >= 1000 and place < len(names) - 1:
        value, place = value / 1000, place + 1
    return value, f"{names[place]}{slash}{per}"


def _place(launch: LaunchDetails) -> tuple[str, ...]:
    device = launch.metrics.get("device__attribute_device_index", 0)
    return (
        str(launch.index),
        *("", "", ""),
        launch.demangled or launch.name,
        *("" if number is None else str(number) for number in (launch.context, launch.stream)),
        _size(launch.block),
        _size(launch.grid),
        f"{device:.0f}" if isinstance(device, int | float) else "",
        launch.compute_capability,
    )


def _size(sizes: tuple[int, ...] | None) -> str:
    return f"({', '.join(map(str, sizes or (0, 0, 0)))})"


def _sections(details: ReportDetails, launch: LaunchDetails) -> list[Section]:
    """Those that the page shows: with a table, or with something to say."""
    spoken = {finding.section for finding in launch.findings}
    return [
        section
        for section in details.sections
        if section.identifier in launch.sections and (section.rows or section.identifier in spoken)
    ]


def _rows(
    details: ReportDetails, section: Section, launch: LaunchDetails
) -> Iterator[tuple[str, str, str]]:
    for metric in sorted(section.rows):
        value, unit = shown(
            launch.metrics.get(metric), details.unit(metric), launch.states.get(metric)
        )
        yield section.rows[metric], value, unit


def _findings(launch: LaunchDetails, section: Section) -> list[Finding]:
    return [finding for finding in launch.findings if finding.section == section.identifier]


def _rule_columns(finding: Finding) -> tuple[str, ...]:
    speedup = "" if finding.speedup is None else f"{finding.speedup:.4g}"
    return finding.rule, finding.kind, finding.message, finding.speedup_kind, speedup


def _table(rows: list[tuple[str, str, str]]) -> Iterator[str]:
    if not rows:
        return
    titled = [("Metric Name", "Metric Value", "Metric Unit"), *rows]
    names, values, units = (max(len(each[at]) for each in titled) for at in range(3))
    line = f"    {'-' * names} {'-' * units} {'-' * values}\n"
    yield line
    for number, (name, value, unit) in enumerate(titled):
        yield f"    {name:<{names}} {unit:>{units}} {value:>{values}}\n"
        if number == 0:
            yield line
    yield line


def _rules(findings: list[Finding]) -> Iterator[str]:
    for number, finding in enumerate(findings):
        yield "\n" if number == 0 else f"    ----- {'-' * RULE_LINE}\n"
        lines = textwrap.wrap(finding.message, RULE_WIDTH, break_on_hyphens=False)
        if finding.speedup is not None and finding.kind == FindingKind.OPT:
            local = "Local " if finding.speedup_kind == "local" else ""
            lines.insert(0, f"Est. {local}Speedup: {finding.speedup:.4g}%")
        for at, line in enumerate(lines):
            yield f"    {finding.kind if at == 0 else '   '}   {line}\n"
