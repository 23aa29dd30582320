"""What a launch's charts show. Each is a table too, from which the browser draws (review.js)."""

from __future__ import annotations

from dataclasses import dataclass

from profiling.pages.values import flops_shown, shown, state_shown
from profiling.reports.details import LaunchDetails
from profiling.reports.summary import number, stalls_of, words

THROUGHPUT = {
    "sm__throughput.avg.pct_of_peak_sustained_elapsed": "Compute (SM)",
    "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed": "Memory",
    "l1tex__throughput.avg.pct_of_peak_sustained_active": "L1/TEX cache",
    "lts__throughput.avg.pct_of_peak_sustained_elapsed": "L2 cache",
    "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed": "DRAM",
    "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active": "Tensor pipe",
    "sm__warps_active.avg.pct_of_peak_sustained_active": "Achieved occupancy",
}
HIT_RATES = {
    "l1tex__t_sector_hit_rate.pct": "L1/TEX",
    "l1tex__t_sector_pipe_lsu_mem_global_op_ld_hit_rate.pct": "L1/TEX, global loads",
    "l1tex__t_sector_pipe_lsu_mem_global_op_st_hit_rate.pct": "L1/TEX, global stores",
    "l1tex__t_sector_pipe_lsu_mem_local_op_ld_hit_rate.pct": "L1/TEX, local loads",
    "l1tex__t_sector_pipe_lsu_mem_local_op_st_hit_rate.pct": "L1/TEX, local stores",
    "lts__t_sector_hit_rate.pct": "L2",
    "lts__t_sector_op_read_hit_rate.pct": "L2, reads",
    "lts__t_sector_op_write_hit_rate.pct": "L2, writes",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """`value` is None where the report has none; `shown` then says why."""

    label: str
    metric: str
    value: float | None
    shown: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BarChart:
    """Of percents. `limit` is the end of the axis, None for the largest value."""

    title: str
    what: str  # the first column
    bars: tuple[Bar, ...]
    limit: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RooflineRow:
    """`work` in flop/s. A bandwidth has bytes/s as its `slope`, a point its flop/byte."""

    label: str
    kind: str  # "bandwidth", "peak", "point"
    work: float | None = None
    slope: float | None = None
    intensity: float | None = None

    @property
    def shown(self) -> str:
        return shown(self.slope, "byte/s") if self.work is None else flops_shown(self.work)

    @property
    def intensity_shown(self) -> str:
        return "" if self.intensity is None else f"{self.intensity:.3g} flop/byte"


def bar_charts(launch: LaunchDetails) -> list[BarChart]:
    """Those that the report has anything for; all are of percents."""
    charts = [
        BarChart(
            title="Throughput and occupancy", what="Unit", bars=_bars(launch, THROUGHPUT), limit=100
        ),
        BarChart(title="Why warps wait", what="Stall", bars=_stalls(launch)),
        BarChart(
            title="Cache hit rates", what="Accesses", bars=_bars(launch, HIT_RATES), limit=100
        ),
    ]
    return [chart for chart in charts if chart.bars]


def _bars(launch: LaunchDetails, wanted: dict[str, str]) -> tuple[Bar, ...]:
    return tuple(
        _bar(launch, metric, label) for metric, label in wanted.items() if metric in launch.metrics
    )


def _bar(launch: LaunchDetails, metric: str, label: str) -> Bar:
    value = number(launch, metric)
    if value is None:
        said = state_shown(launch.states.get(metric, "no_value"))
        return Bar(label=label, metric=metric, value=None, shown=said)
    return Bar(label=label, metric=metric, value=value, shown=shown(value, "%"))


def _stalls(launch: LaunchDetails) -> tuple[Bar, ...]:
    return tuple(
        Bar(
            label=words(stall.reason),
            metric=stall.reason,
            value=stall.share_pct,
            shown=shown(stall.share_pct, "%"),
        )
        for stall in stalls_of(launch)
    )


_PRECISIONS = {"FP32": "f", "FP64": "d"}


def roofline(launch: LaunchDetails) -> list[RooflineRow]:
    """Ceilings, and where the launch is below them; empty without the section's metrics."""
    rows = []
    traffic = number(launch, "dram__bytes.sum.per_second")
    bandwidth = _product(
        launch, "dram__bytes.sum.peak_sustained", "dram__cycles_elapsed.avg.per_second"
    )
    for name, letter in _PRECISIONS.items():
        peak = _product(
            launch,
            f"derived__sm__sass_thread_inst_executed_op_{letter}fma_pred_on_x2",
            "sm__cycles_elapsed.avg.per_second",
        )
        if peak:
            rows.append(RooflineRow(label=f"{name} peak", kind="peak", work=peak))
        work = _work(launch, letter)
        if work and traffic:
            rows.append(
                RooflineRow(
                    label=f"This launch, {name}", kind="point", work=work, intensity=work / traffic
                )
            )
    if not rows or not bandwidth:
        return []
    return [RooflineRow(label="DRAM bandwidth", kind="bandwidth", slope=bandwidth), *rows]


def _work(launch: LaunchDetails, letter: str) -> float | None:
    """Additions, multiplications, and twice the fused ones, per second."""
    executed = "smsp__sass_thread_inst_executed_op_"
    per_cycle = [
        number(launch, f"{executed}{letter}add_pred_on.sum.per_cycle_elapsed"),
        number(launch, f"{executed}{letter}mul_pred_on.sum.per_cycle_elapsed"),
        number(launch, f"derived__{executed}{letter}fma_pred_on_x2"),
    ]
    cycles = number(launch, "smsp__cycles_elapsed.avg.per_second")
    if cycles is None or any(each is None for each in per_cycle):
        return None
    return sum(each or 0.0 for each in per_cycle) * cycles


def _product(launch: LaunchDetails, *names: str) -> float | None:
    product = 1.0
    for name in names:
        value = number(launch, name)
        if value is None:
            return None
        product *= value
    return product
