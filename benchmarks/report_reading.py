"""Time and memory of reading real reports (docs/benchmarks.md).

    python -m benchmarks.report_reading [--rounds N] [NAME …]

Each report is read in a child process of its own, as the service does it. Prints JSON: the fastest
and the median of the child's seconds, the least of its CPU seconds, its peak memory in megabytes
(10^6 bytes), the seconds of the whole reading with session, SASS and sources, and the size of what
is stored.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from profiling.reports import child, limited
from profiling.reports.details import pack
from profiling.reports.limited import ChildLimits
from profiling.reports.reader import read_report
from tests.shared import SHARED

NAMES = (
    "t4-ncu2024.2-full",
    "rtx4060-ncu2024.1-windows-full",
    "a100-ncu2023.3-source-nan",
    "h800-ncu2023.3-pytorch-nvtx-nan",
    "a10-ncu2023.2-105-kernels",
)


def read_in_child(report: Path) -> tuple[float, float, float]:
    """Seconds from the start of the process to its end, of its CPU, and its peak in megabytes."""
    limits = json.dumps(asdict(ChildLimits()))
    command = [sys.executable, "-I", limited.__file__, limits, child.__file__, str(report)]
    began = time.monotonic()
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env={"LC_ALL": "C.UTF-8"}
    )
    assert process.stdout is not None
    process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.monotonic() - began
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise SystemExit(f"{report.name}: the reader ended with {process.returncode}")
    return seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024 / 1e6


def measure(report: Path, rounds: int) -> dict[str, Any]:
    taken, busy, peaks = zip(*(read_in_child(report) for _ in range(rounds)), strict=True)
    began = time.monotonic()
    facts = read_report(report)
    whole = time.monotonic() - began
    assert facts.details is not None
    packed = pack(facts.details)
    return {
        "report": report.name,
        "launches": facts.launch_count,
        "metrics": sum(launch.metric_count for launch in facts.details.launches),
        "child_s": round(min(taken), 3),
        "child_cpu_s": round(min(busy), 3),
        "child_median_s": round(statistics.median(taken), 3),
        "child_peak_mb": round(max(peaks), 1),
        "whole_s": round(whole, 3),
        "stored_bytes": len(packed.content),
        "unpacked_bytes": packed.unpacked_bytes,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure the reading of real reports.")
    parser.add_argument("names", nargs="*", default=NAMES, metavar="NAME")
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    if SHARED is None:
        raise SystemExit("the real reports are not beside the checkout")
    found = [
        measure(SHARED / "ncu-samples" / f"{name}.ncu-rep", arguments.rounds)
        for name in arguments.names
    ]
    print(json.dumps({"cores": os.cpu_count(), "python": sys.version.split()[0], "read": found}))


if __name__ == "__main__":
    main()
