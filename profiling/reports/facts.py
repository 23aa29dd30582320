"""What was read from a report, in plain values that any database and any JSON parser takes."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from profiling.reports.session import Session
from runners.gpu import wire


class Problem(StrEnum):
    """Why a report is no success."""

    NONE = ""
    CUT = "cut"  # the framing does not add up: cut, overwritten, or no report at all
    EMPTY = "empty"
    NAMELESS_LAUNCH = "nameless_launch"
    READER_CRASHED = "reader_crashed"  # or printed what nobody understands
    READER_TIMEOUT = "reader_timeout"
    READER_REFUSED = "reader_refused"  # or, without a word, lost launches


class MetricState(StrEnum):
    """Whether a metric has a value, and what stands in its place (FR-10, FR-19)."""

    OK = "ok"
    ABSENT = "absent"  # not collected
    NO_VALUE = "no_value"  # collected, says the report, which gives no value
    NAN = "nan"
    INF = "inf"


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
    launches: tuple[LaunchFacts, ...]  # the first LAUNCHES_KEPT
    unavailable_count: int
    unavailable: tuple[Unavailable, ...]  # by name, the first UNAVAILABLE_KEPT


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportFacts:
    """All that a capture keeps of its report. `detail` says the problem in a sentence."""

    problem: Problem = Problem.NONE
    detail: str = ""
    session: Session = field(default_factory=Session)
    launch_count: int | None = None  # None where the report is too broken to count
    launches: tuple[LaunchFacts, ...] = ()
    unavailable_count: int = 0
    unavailable: tuple[Unavailable, ...] = ()

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

    def to_json(self) -> dict[str, Any]:
        """For a JSONField: no NaN, no NUL, no half of a surrogate pair."""
        plain: dict[str, Any] = wire.encode(self)
        return plain
