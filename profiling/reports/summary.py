"""What matters of a report, with the numbers behind it, for people and programs.

Pure functions on `ReportDetails`. The form is told in docs/evidence.md and changes only with
`SUMMARY_SCHEMA`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from profiling.reports.details import Finding, FindingKind, HotSpot, LaunchDetails, ReportDetails

SUMMARY_SCHEMA = 1
FINDINGS_SHOWN = 5
STALLS_SHOWN = 3
SPOTS_SHOWN = 5

# The numbers of a launch: key in the summary, and metric. Units are in the key.
NUMBERS = {
    "duration_ns": "gpu__time_duration.sum",
    "compute_pct": "sm__throughput.avg.pct_of_peak_sustained_elapsed",
    "memory_pct": "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed",
    "dram_pct": "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed",
    "l1_hit_pct": "l1tex__t_sector_hit_rate.pct",
    "l2_hit_pct": "lts__t_sector_hit_rate.pct",
    "occupancy_pct": "sm__warps_active.avg.pct_of_peak_sustained_active",
    "theoretical_occupancy_pct": "sm__maximum_warps_per_active_cycle_pct",
    "waves_per_sm": "launch__waves_per_multiprocessor",
    "registers_per_thread": "launch__registers_per_thread",
    "issue_active_pct": "smsp__issue_active.avg.pct_of_peak_sustained_active",
    "instructions": "smsp__inst_executed.sum",
    "passes": "profiler__replayer_passes",
}

# As ncu's own rule has it: below this share of the peak, a unit is not the limit.
BUSY_PCT = 60.0
LOW_OCCUPANCY_PCT = 50.0
_PER_ISSUE = ("smsp__average_warps_issue_stalled_", "_per_issue_active.ratio")
_SAMPLED = ("smsp__pcsamp_warps_issue_stalled_", "")


class Bound(StrEnum):
    """What keeps a launch from being faster."""

    COMPUTE = "compute"
    MEMORY = "memory"
    LATENCY = "latency"
    OCCUPANCY = "occupancy"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stall:
    reason: str  # "long_scoreboard"
    share_pct: float  # of the warps' time


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchSummary:
    """`numbers` by the keys of `NUMBERS`; None where `unavailable` says why."""

    index: int
    name: str
    demangled: str
    grid: tuple[int, ...] | None
    block: tuple[int, ...] | None
    failed: bool
    numbers: dict[str, float | None]
    unavailable: dict[str, str]  # "absent", "no_value", "nan", "inf"
    time_share_pct: float | None  # of all launches that are summarised
    bound: Bound
    bound_because: str
    stalls: tuple[Stall, ...]  # the largest first
    findings: tuple[Finding, ...]  # with an estimated speed-up, the largest first
    hot_spots: tuple[HotSpot, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportSummary:
    schema: int = SUMMARY_SCHEMA
    launch_count: int
    launches: tuple[LaunchSummary, ...]
    total_duration_ns: float | None
    look_first: int | None  # the index of the launch that takes the most time


def summarise(details: ReportDetails) -> ReportSummary:
    durations = {
        launch.index: duration
        for launch in details.launches
        if (duration := number(launch, NUMBERS["duration_ns"])) is not None
    }
    total = sum(durations.values())
    return ReportSummary(
        launch_count=details.launch_count,
        launches=tuple(
            _summary(launch, durations.get(launch.index), total) for launch in details.launches
        ),
        total_duration_ns=total if durations else None,
        look_first=max(durations, key=lambda index: (durations[index], -index), default=None),
    )


def number(launch: LaunchDetails, metric: str) -> float | None:
    value = launch.metrics.get(metric)
    return value if isinstance(value, int | float) else None


def stalls_of(launch: LaunchDetails) -> tuple[Stall, ...]:
    """All reasons for which warps waited, the largest first; those that issued are no stall."""
    for before, after in (_PER_ISSUE, _SAMPLED):
        found = {
            name.removeprefix(before).removesuffix(after): value
            for name in launch.metrics
            if name.startswith(before)
            and name.endswith(after)
            and not name.endswith("_not_issued")
            and (value := number(launch, name)) is not None
        }
        if total := sum(found.values()):
            ranked = sorted(found.items(), key=lambda each: (-each[1], each[0]))
            return tuple(
                Stall(reason=reason, share_pct=100 * value / total)
                for reason, value in ranked
                if value > 0 and reason != "selected"
            )
    return ()


def _summary(launch: LaunchDetails, duration: float | None, total: float) -> LaunchSummary:
    numbers = {key: number(launch, metric) for key, metric in NUMBERS.items()}
    bound, because = _bound(launch, numbers)
    told = [each for each in launch.findings if each.speedup is not None]
    # What an estimate is of comes first: "local" is of one unit, not of the launch.
    told.sort(key=lambda each: (each.speedup_kind != "global", -(each.speedup or 0.0)))
    silent = [
        each for each in launch.findings if each.speedup is None and each.kind == FindingKind.OPT
    ]
    return LaunchSummary(
        index=launch.index,
        name=launch.name,
        demangled=launch.demangled,
        grid=launch.grid,
        block=launch.block,
        failed=launch.failed,
        numbers=numbers,
        unavailable={
            key: launch.states[metric].value if metric in launch.states else "absent"
            for key, metric in NUMBERS.items()
            if numbers[key] is None
        },
        time_share_pct=100 * duration / total if duration is not None and total else None,
        bound=bound,
        bound_because=because,
        stalls=stalls_of(launch)[:STALLS_SHOWN],
        findings=tuple([*told, *silent][:FINDINGS_SHOWN]),
        hot_spots=launch.hot_spots[:SPOTS_SHOWN],
    )


def _bound(launch: LaunchDetails, numbers: dict[str, float | None]) -> tuple[Bound, str]:
    if launch.failed:
        return Bound.UNKNOWN, "the launch failed"
    compute, memory = numbers["compute_pct"], numbers["memory_pct"]
    if compute is None or memory is None:
        return Bound.UNKNOWN, "the report has no throughput of compute or memory"
    busy = f"compute {compute:.1f} % and memory {memory:.1f} % of their peaks"
    if max(compute, memory) >= BUSY_PCT:
        return (Bound.COMPUTE if compute >= memory else Bound.MEMORY), busy
    waves, possible, reached = (
        numbers[key] for key in ("waves_per_sm", "theoretical_occupancy_pct", "occupancy_pct")
    )
    if waves is not None and waves < 1:
        return Bound.OCCUPANCY, f"{busy}; the grid fills only {waves:.2f} waves of the SMs"
    if possible is not None and possible <= LOW_OCCUPANCY_PCT:
        said = f"{busy}; registers, shared memory or block size allow {possible:.1f} % occupancy"
        return Bound.OCCUPANCY, said
    if reached is not None and reached < LOW_OCCUPANCY_PCT:
        return Bound.OCCUPANCY, f"{busy}; {reached:.1f} % of the warps are active"
    why = (
        f"; warps wait mostly for {words(stalls[0].reason)}"
        if (stalls := stalls_of(launch))
        else ""
    )
    return Bound.LATENCY, f"{busy}{why}"


def words(reason: str) -> str:
    """A stall's reason for people."""
    return reason.replace("_", " ")
