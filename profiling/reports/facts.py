"""What was read from a report, in plain values that any database and any JSON parser takes."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from profiling.reports.details import LaunchDetails, MetricState, ReportDetails, Section
from profiling.reports.session import Session
from runners.gpu import wire

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


class Problem(StrEnum):
    """Why a report is no success."""

    NONE = ""
    CUT = "cut"  # the framing does not add up: cut, overwritten, or no report at all
    EMPTY = "empty"
    NAMELESS_LAUNCH = "nameless_launch"
    READER_CRASHED = "reader_crashed"  # or printed what nobody understands
    READER_TIMEOUT = "reader_timeout"
    READER_REFUSED = "reader_refused"  # or, without a word, lost launches


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """A value as the report has it, neither rounded nor converted; None unless the state is ok."""

    state: MetricState
    value: int | float | str | None
    unit: str  # "ns", "%", "inst"; empty where the metric has none


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchFacts:
    """One kernel launch. `metrics` always has all of `KEY_METRICS`, in that order."""

    name: str
    demangled: str
    grid: tuple[int, ...] | None  # x, y, z; None where a failed launch does not say
    block: tuple[int, ...] | None
    metrics: dict[str, Metric]
    metric_count: int  # of all metrics that the report lists, as are the next three
    nan_count: int
    inf_count: int
    no_value_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Unavailable:
    """A metric that is listed without a usable value, in `launches` of the launches."""

    name: str
    state: MetricState
    launches: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReaderDocument:
    """What `child.py` prints when it could read. The counts are of all, the tuples are bounded."""

    launch_count: int
    nameless: int
    failed: int
    counters: int  # of all launches that did not fail, as is the next
    counters_unusable: int
    launches: tuple[LaunchDetails, ...]  # the first LAUNCHES_KEPT
    sections: tuple[Section, ...]
    units: dict[str, str]
    metrics_left_out: int
    unavailable_count: int
    unavailable: tuple[Unavailable, ...]  # by name, the first UNAVAILABLE_KEPT


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportFacts:
    """All that a capture keeps of its report. `detail` says the problem in a sentence."""

    problem: Problem = Problem.NONE
    detail: str = ""
    session: Session = field(default_factory=Session)
    launch_count: int | None = None  # None where the report is too broken to count
    failed: int = 0
    counters: int = 0
    counters_unusable: int = 0
    launches: tuple[LaunchFacts, ...] = ()
    unavailable_count: int = 0
    unavailable: tuple[Unavailable, ...] = ()
    details: ReportDetails | None = None  # None unless the library could read it

    @property
    def replay_passes(self) -> int | None:
        """The most passes that any of the kept launches took; None where none says it."""
        found = [
            int(metric.value)
            for launch in self.launches
            if isinstance(
                (metric := launch.metrics["profiler__replayer_passes"]).value, int | float
            )
        ]
        return max(found, default=None)

    def kernels_json(self) -> list[dict[str, Any]]:
        """For a JSONField: no NaN, no NUL, no half of a surrogate pair."""
        plain: list[dict[str, Any]] = wire.encode(self.launches)
        return plain

    def unavailable_json(self) -> list[dict[str, Any]]:
        plain: list[dict[str, Any]] = wire.encode(self.unavailable)
        return plain


def key_facts(launch: LaunchDetails, units: dict[str, str]) -> LaunchFacts:
    """What lists show of a launch."""
    return LaunchFacts(
        name=launch.name,
        demangled=launch.demangled,
        grid=launch.grid,
        block=launch.block,
        metrics={name: _metric(launch, units, name) for name in KEY_METRICS},
        metric_count=launch.metric_count,
        nan_count=launch.nan_count,
        inf_count=launch.inf_count,
        no_value_count=launch.no_value_count,
    )


def _metric(launch: LaunchDetails, units: dict[str, str], name: str) -> Metric:
    if name not in launch.metrics:
        return Metric(state=MetricState.ABSENT, value=None, unit="")
    return Metric(
        state=launch.states.get(name, MetricState.OK),
        value=launch.metrics[name],
        unit=units.get(name, ""),
    )
