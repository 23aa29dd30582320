"""Two synthetic profiles of alice that have all that the page can show; run as a program with the
environment of a service. Prints their ids and the link to the first one's page as JSON."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import django

django.setup()

from leaderboards.models import PopcornUser  # noqa: E402
from profiling.actions import rerun_request  # noqa: E402
from profiling.links import page_url  # noqa: E402
from profiling.models import CaptureDetails, ProfileRequest  # noqa: E402
from profiling.reports.details import (  # noqa: E402
    Finding,
    FindingKind,
    HotSpot,
    ReportDetails,
    Section,
    pack,
    unpack,
)
from tests.profiling.envelopes import a_launch, make_archive  # noqa: E402
from tests.profiling.evidence import finished_profile  # noqa: E402
from tests.profiling.orders import submit  # noqa: E402
from tests.synthetic_reports import dimensions  # noqa: E402

LONG_NAME = "rowsum_kernel_" + "with_a_very_long_template_argument_" * 4
HOSTILE = "<img src=x onerror=document.title='owned'>"
NAMES = ("rowsum_kernel", "fill_kernel", LONG_NAME, HOSTILE)
# As wide as values get.
LARGE = {
    **dimensions((2_147_483_647, 65_535, 65_535), (1024, 1, 1)),
    "smsp__inst_executed.sum": 987_654_321_012.0,
}
_SASS_OP = "smsp__sass_thread_inst_executed_op_f"
METRICS: dict[str, float] = {
    "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed": 88.4,
    "sm__throughput.avg.pct_of_peak_sustained_elapsed": 27.8,
    "l1tex__throughput.avg.pct_of_peak_sustained_active": 46.8,
    "lts__throughput.avg.pct_of_peak_sustained_elapsed": 26.2,
    "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed": 88.4,
    "sm__warps_active.avg.pct_of_peak_sustained_active": 79.4,
    "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active": float("nan"),
    "l1tex__t_sector_hit_rate.pct": 12.5,
    "lts__t_sector_hit_rate.pct": 50.3,
    "lts__t_sector_op_read_hit_rate.pct": 25.3,
    "lts__t_sector_op_write_hit_rate.pct": 99.9,
    "dram__bytes.sum.per_second": 5.1e12,
    "dram__bytes.sum.peak_sustained": 4096.0,
    "dram__cycles_elapsed.avg.per_second": 1.9e9,
    "sm__cycles_elapsed.avg.per_second": 1.6e9,
    "smsp__cycles_elapsed.avg.per_second": 1.6e9,
    "derived__sm__sass_thread_inst_executed_op_ffma_pred_on_x2": 37888.0,
    "derived__sm__sass_thread_inst_executed_op_dfma_pred_on_x2": 18944.0,
    f"{_SASS_OP}add_pred_on.sum.per_cycle_elapsed": 800.0,
    f"{_SASS_OP}mul_pred_on.sum.per_cycle_elapsed": 10.0,
    "derived__smsp__sass_thread_inst_executed_op_ffma_pred_on_x2": 120.0,
    **{
        f"smsp__average_warps_issue_stalled_{reason}_per_issue_active.ratio": warps
        for reason, warps in {
            "long_scoreboard": 32.8,
            "wait": 3.4,
            "drain": 1.6,
            "short_scoreboard": 1.5,
            "selected": 1.0,
            "imc_miss": 0.7,
            "no_instruction": 0.5,
        }.items()
    },
}
FINDINGS = (
    Finding(
        section="WarpStateStats",
        rule="CPIStall",
        name="Warp Stall",
        kind=FindingKind.OPT,
        title="Long Scoreboard Stalls",
        message="On average, each warp of this kernel spends 32.8 cycles being stalled waiting "
        "for a scoreboard dependency on a L1TEX operation. (Synthetic.)",
        speedup=11.6,
        speedup_kind="global",
    ),
    Finding(
        section="SpeedOfLight",
        rule="SOLBottleneck",
        name="Bottleneck",
        kind=FindingKind.INF,
        title="High Memory Throughput",
        message="The kernel uses more than 80 % of the memory throughput. (Synthetic.)",
        speedup=None,
        speedup_kind="",
    ),
    Finding(
        section="MemoryWorkloadAnalysis",
        rule="L2",
        name="L2",
        kind=FindingKind.OPT,
        title="Uncoalesced Global Accesses",
        message="Only 16 of 32 bytes of each sector are used by the threads. (Synthetic.)",
        speedup=34.2,
        speedup_kind="local",
    ),
)
HOT_SPOTS = tuple(
    HotSpot(
        offset=272 + 16 * place,
        samples=869 // (place + 1),
        instructions=31_500,
        stalls={"long_scoreboard": 800 // (place + 1), "wait": 12},
        sass=f"FADD R{place}, R4, R{place + 1}",
        file="rowsum.cu",
        line=14 + place,
        source="sum += row[i];",
    )
    for place in range(5)
)


def with_findings(details: ReportDetails) -> ReportDetails:
    section = Section(
        identifier="SpeedOfLight",
        name="GPU Speed Of Light Throughput",
        order=10,
        rows={name: name.split(".")[0] for name in METRICS if "throughput" in name},
    )
    launches = tuple(
        replace(launch, findings=FINDINGS, hot_spots=HOT_SPOTS, sections=("SpeedOfLight",))
        for launch in details.launches
    )
    return replace(details, launches=launches, sections=(section,))


def make_profile(folder: Path, request: ProfileRequest, faster_by: float) -> ProfileRequest:
    launches = [
        a_launch(
            name,
            **METRICS
            | (LARGE if name == LONG_NAME else {})
            | {
                "gpu__time_duration.sum": (place + 1) * 40_000 / faster_by,
                "smsp__cycles_active.avg": float("-inf" if place % 2 else "inf"),
            },
        )
        for place, name in enumerate(NAMES)
    ]
    archives = {
        index: make_archive(folder / f"{request.pk}-{index}.zip", launches) for index in (0, 1)
    }
    made = finished_profile(request.user, folder, archives, request=request, origin="synthetic")
    for kept in CaptureDetails.objects.filter(capture__request=made):
        packed = pack(with_findings(unpack(kept.content, kept.schema)))
        kept.content, kept.unpacked_bytes = packed.content, packed.unpacked_bytes
        kept.save()
    return made


def main(folder: Path) -> None:
    alice = PopcornUser.objects.get(username="alice")
    first = make_profile(folder, submit(alice), 1.0)
    origin = ProfileRequest.Origin.API
    second = make_profile(folder, rerun_request(first, actor=alice, origin=origin), 1.25)
    print(json.dumps({"ids": [str(first.pk), str(second.pk)], "page": page_url(first)}))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
