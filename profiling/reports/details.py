"""All that is kept of a report's launches, beside the few facts that lists show.

Stored once per capture as compressed JSON (`pack`), so that a page never parses a report again.
The schema is told in docs/evidence.md; `SCHEMA` changes with every change of meaning.
"""

from __future__ import annotations

import json
import zlib
from dataclasses import dataclass, field
from enum import StrEnum

from runners.gpu import wire

SCHEMA = 1
MAX_DETAILS_BYTES = 64 * 2**20

MetricValue = int | float | str | None
Dim3 = tuple[int, ...]


class MetricState(StrEnum):
    """Whether a metric has a value, and what stands in its place (FR-10, FR-19)."""

    OK = "ok"
    ABSENT = "absent"  # not collected
    NO_VALUE = "no_value"  # collected, says the report, which gives no value
    NAN = "nan"
    INF = "inf"


class FindingKind(StrEnum):
    """How a rule's result is told, in the words of ncu."""

    OPT = "OPT"
    INF = "INF"
    WRN = "WRN"
    ERR = "ERR"


class Workload(StrEnum):
    KERNEL = "kernel"
    RANGE = "range"
    CMDLIST = "cmdlist"
    GRAPH = "graph"
    OTHER = "other"


@dataclass(frozen=True, slots=True, kw_only=True)
class FocusMetric:
    """A metric that a rule's result rests on, and what to do with it."""

    metric: str
    value: float | None  # in base units
    info: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """The result of a rule for one launch."""

    section: str  # identifier, "SpeedOfLight"
    rule: str  # identifier, "SOLBottleneck"
    name: str
    kind: FindingKind
    title: str
    message: str  # links in ncu's form are plain text here, paths are cut to the file's name
    speedup: float | None  # percent that the rule estimates
    speedup_kind: str  # "global" (of the whole launch), "local", or ""
    focus: tuple[FocusMetric, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class HotSpot:
    """An instruction, told by its offset from the first one. Text is empty where it is not said."""

    offset: int  # bytes
    samples: int | None  # of the warp sampler; None where the report has none
    instructions: int | None  # executed, of all warps
    stalls: dict[str, int]  # the reasons with the most samples, "long_scoreboard": 866
    sass: str = ""
    file: str = ""  # the last part of the path
    line: int | None = None
    source: str = ""  # that line


@dataclass(frozen=True, slots=True, kw_only=True)
class NvtxDomain:
    """Ranges that were open at the launch, the outermost first."""

    name: str
    push_pop: tuple[str, ...]
    start_end: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchDetails:
    """One launch. `metrics` has None where `states` says why; units are those of the report."""

    index: int
    name: str
    demangled: str
    mangled: str
    workload: Workload
    grid: Dim3 | None  # x, y, z; None where a failed launch does not say
    block: Dim3 | None
    failed: bool  # it did not run: no grid, and no counter has a value
    metric_count: int  # of all that the report lists, as are the next counts
    nan_count: int
    inf_count: int
    no_value_count: int
    counters: int  # hardware counters, and those of them without a usable value
    counters_unusable: int
    metrics: dict[str, MetricValue]
    states: dict[str, MetricState]
    sections: tuple[str, ...]  # identifiers
    rule_count: int  # rules that were run; those with something to say are the findings
    findings: tuple[Finding, ...]
    nvtx: tuple[NvtxDomain, ...]
    hot_spots: tuple[HotSpot, ...]
    context: int | None = None
    stream: int | None = None
    range: int = 0  # of the report, which has one for each process; 0 is the first

    @property
    def compute_capability(self) -> str:
        """Of its GPU, "10.0"; empty where the report does not say it."""
        parts = [
            self.metrics.get(f"device__attribute_compute_capability_{part}")
            for part in ("major", "minor")
        ]
        if any(isinstance(part, str) or part is None for part in parts):
            return ""
        return ".".join(f"{part:.0f}" for part in parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A section of the details page. `rows` of its table: metric to label, in ncu's order."""

    identifier: str
    name: str
    order: int
    rows: dict[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportDetails:
    """`launches` are the first of `launch_count`."""

    schema: int = SCHEMA
    launch_count: int
    launches: tuple[LaunchDetails, ...]
    sections: tuple[Section, ...]  # in the order of the details page
    units: dict[str, str]  # by metric, as the report has them, "ns"; not for those without one
    # Why there is no SASS and no source beside the hot spots; empty if there is, or no hot spot.
    source_problem: str = ""
    # Metrics of the kept launches that were too many to keep.
    metrics_left_out: int = 0

    def unit(self, metric: str) -> str:
        return self.units.get(metric, "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Packed:
    content: bytes
    unpacked_bytes: int
    schema: int = field(default=SCHEMA)


class DetailsError(ValueError):
    """What is stored is damaged, or of a schema that this version does not read."""


def pack(details: ReportDetails) -> Packed:
    plain = wire.dumps(details)
    return Packed(content=zlib.compress(plain, 6), unpacked_bytes=len(plain))


def unpack(content: bytes, schema: int, *, launch: int | None = None) -> ReportDetails:
    """Takes milliseconds, or a second for hundreds of launches. Raises DetailsError.

    With `launch`, only the one of that index is read, which takes a tenth of the time.
    """
    if schema != SCHEMA:
        raise DetailsError(f"stored in schema {schema}, this version reads {SCHEMA}")
    try:
        unpacker = zlib.decompressobj()
        plain = unpacker.decompress(content, MAX_DETAILS_BYTES)
        if not unpacker.eof:
            raise DetailsError("the stored details are cut, or too large")
        if launch is None:
            return wire.loads(ReportDetails, plain, max_bytes=MAX_DETAILS_BYTES)
        value = json.loads(plain)
        value["launches"] = [each for each in value["launches"] if each["index"] == launch]
        one: ReportDetails = wire.decode(ReportDetails, value, ReportDetails.__name__)
    except (zlib.error, wire.WireError, ValueError, TypeError, KeyError) as error:
        raise DetailsError(f"the stored details cannot be read: {error}") from error
    return one
