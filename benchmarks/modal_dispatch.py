"""What one dispatcher costs with many jobs at Modal: python -m benchmarks.modal_dispatch

Against the fake Modal, over the real client: 500 jobs in flight (memory, and CPU while they wait),
the time from a claim to a running job, the time from a finished run to the result at the client,
and the memory that a 100 MB result takes. Settings are the defaults, but for limits in flight.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path

from tests.modal.by_hand import PATH, ByHand
from tests.server.popcorn import form
from tests.server.service import wait_for

CLOCK_TICKS = os.sysconf("SC_CLK_TCK")


class Bench(ByHand):
    """With the settings that production has by default, apart from what is measured."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, RESULT_LINE_MAX_BYTES=2**28)
        for shortened in ("WATCH_EVERY_S", "POLL_EVERY_S", "STREAM_STATUS_EVERY_S", "LEASE_S"):
            del self.env[shortened]

    def resident(self, name: str) -> float:
        """MB of a process now."""
        status = Path(f"/proc/{self.pid(name)}/status").read_text()
        return int(status.partition("VmRSS:")[2].split()[0]) / 1000

    def peak(self, name: str) -> float:
        status = Path(f"/proc/{self.pid(name)}/status").read_text()
        return int(status.partition("VmHWM:")[2].split()[0]) / 1000

    def cpu_s(self, name: str) -> float:
        fields = Path(f"/proc/{self.pid(name)}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / CLOCK_TICKS

    def statuses(self, status: str) -> int:
        sql = "select count(*) n from runners_job where status = ?"
        return int(self.rows(sql, status)[0]["n"])


def many_in_flight(bench: Bench, count: int, seconds: float) -> None:
    before = bench.resident("dispatcher")
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: bench.submit(), range(count)))
    wait_for(lambda: bench.statuses("running") >= count, 300)
    time.sleep(30)  # the starts are behind it, all long polls have come round
    began = bench.cpu_s("dispatcher")
    time.sleep(seconds)
    used = (bench.cpu_s("dispatcher") - began) / seconds
    print(f"{count} in flight: {bench.resident('dispatcher'):.0f} MB ({before:.0f} MB before)")
    print(f"{count} in flight: {used:.1%} of one core while waiting, over {seconds:g} s")


def starts(bench: Bench, count: int) -> None:
    since = bench.rows("select max(created_at) at from runners_job")[0]["at"] or ""
    for _ in range(count):
        bench.submit()
        time.sleep(1.3)
    wait_for(lambda: bench.statuses("running") == count)
    rows = bench.rows("select starting_at, running_at from runners_job where created_at > ?", since)
    took = [_seconds(row["starting_at"], row["running_at"]) * 1000 for row in rows]
    print(f"claim to running: p50 {statistics.median(took):.0f} ms, max {max(took):.0f} ms")


def results(bench: Bench, archive: Path, count: int) -> None:
    took = []
    for _ in range(count):
        known = {call["id"] for call in bench.modal.calls()}
        with bench.client() as client, client.stream("POST", PATH, **form(benchmark_index=0)) as r:
            chunks = r.iter_raw()
            seen = next(chunk for chunk in chunks if b'running"' in chunk)
            call = next(c for c in bench.modal.calls() if c["id"] not in known)
            ended = bench.finish(call, archive)
            # Not parsed: like the CLI's, the parser of the tests is quadratic in a line's length.
            last = deque(chunks, maxlen=2)
            assert b"".join(last).endswith(b"}\n\n"), seen
            took.append((time.time() - ended) * 1000)
    print(
        f"finish to result at client: p50 {statistics.median(took):.0f} ms, max {max(took):.0f} ms"
    )


def large_result(bench: Bench, archive: Path) -> None:
    before = bench.resident("dispatcher"), bench.resident("web")
    began = time.time()
    results(bench, archive, 1)
    grown = bench.peak("dispatcher") - before[0], bench.resident("web") - before[1]
    size = archive.stat().st_size / 1e6
    print(
        f"{size:.0f} MB result: dispatcher peak +{grown[0]:.0f} MB, web +{grown[1]:.0f} MB, "
        f"{time.time() - began:.1f} s"
    )


def _seconds(begin: str, end: str) -> float:
    return (datetime.fromisoformat(end) - datetime.fromisoformat(begin)).total_seconds()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=500)
    parser.add_argument("--seconds", type=float, default=60, help="of watching the CPU")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder))
        try:
            bench.prepare()
            small, large = bench.make_archive(10_000), bench.make_archive(100_000_000)
            bench.start_web()
            bench.start_dispatcher()
            starts(bench, 20)
            results(bench, small, 10)
            large_result(bench, large)
            many_in_flight(bench, arguments.jobs, arguments.seconds)
        finally:
            bench.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
