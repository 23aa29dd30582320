"""SASS and source lines of the hot spots, read in a child of its own: its crash costs only these."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from profiling.reports import source_child
from profiling.reports.details import HotSpot, LaunchDetails, ReportDetails
from profiling.reports.limited import ChildLimits, Ended, run_limited
from runners.gpu import wire

PROGRAM = Path(source_child.__file__)
NO_SASS = "the instructions could not be read"
NO_LINES = "the kernels were compiled without line information"
NOT_IMPORTED = "the report holds no source of these lines"


@dataclass(frozen=True, slots=True, kw_only=True)
class Spot:
    launch: int
    offset: int
    sass: str
    file: str
    line: int | None
    path: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    path: int
    line: int
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Spots:
    spots: tuple[Spot, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Lines:
    lines: tuple[Line, ...]


def with_sources(
    details: ReportDetails, report: Path, limits: ChildLimits, program: Path = PROGRAM
) -> ReportDetails:
    """`details` with SASS and source where the report has them, else with the reason. It blocks."""
    if not any(launch.hot_spots for launch in details.launches):
        return details
    ended = run_limited(program, str(report.resolve()), limits)
    first, _, rest = ended.output.partition(b"\n")
    try:
        spots = wire.loads(_Spots, first, max_bytes=limits.output_bytes).spots
    except wire.WireError:
        return replace(details, source_problem=f"{NO_SASS}: {_how(ended)}")
    try:
        lines = wire.loads(_Lines, rest, max_bytes=limits.output_bytes).lines
        problem = _problem(spots, lines)
    except wire.WireError:
        lines, problem = (), f"the sources could not be read: {_how(ended)}"
    found = {(spot.launch, spot.offset): spot for spot in spots}
    texts = {(line.path, line.line): line.source for line in lines}
    return replace(
        details,
        launches=tuple(_filled(launch, found, texts) for launch in details.launches),
        source_problem=problem,
    )


def _problem(spots: tuple[Spot, ...], lines: tuple[Line, ...]) -> str:
    if lines:
        return ""
    return NOT_IMPORTED if any(spot.line for spot in spots) else NO_LINES


def _how(ended: Ended) -> str:
    if ended.timed_out:
        return "NVIDIA's library reached its time limit"
    return f"NVIDIA's library ended with {ended.how}"


def _filled(
    launch: LaunchDetails,
    found: dict[tuple[int, int], Spot],
    texts: dict[tuple[int, int], str],
) -> LaunchDetails:
    spots = tuple(
        _spot(spot, found.get((launch.index, spot.offset)), texts) for spot in launch.hot_spots
    )
    return replace(launch, hot_spots=spots)


def _spot(spot: HotSpot, said: Spot | None, texts: dict[tuple[int, int], str]) -> HotSpot:
    if said is None:
        return spot
    source = ""
    if said.path is not None and said.line is not None:
        source = texts.get((said.path, said.line), "")
    return replace(spot, sass=said.sass, file=said.file, line=said.line, source=source)
