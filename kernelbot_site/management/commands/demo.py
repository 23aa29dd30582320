from __future__ import annotations

import itertools
import os
import socket
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from kernelbot_site.local_setup import EXAMPLES, prepare_machine
from kernelbot_site.popcorn_client import PopcornClient, ProfileFailed, extract_captures
from kernelbot_site.supervisor import Supervisor

LEADERBOARD = "vectoradd"
SUBMISSION = EXAMPLES / "problems/vectoradd_py/submission.py"
# Heading, metric, and how its value is shown.
COLUMNS = [
    ("duration", "gpu__time_duration.sum", lambda ns: f"{ns / 1000:,.2f} us"),
    ("occupancy", "sm__warps_active.avg.pct_of_peak_sustained_active", lambda x: f"{x:.2f} %"),
    ("SM", "sm__throughput.avg.pct_of_peak_sustained_elapsed", lambda x: f"{x:.2f} %"),
    (
        "memory",
        "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed",
        lambda x: f"{x:.2f} %",
    ),
    ("L2 hits", "lts__t_sector_hit_rate.pct", lambda x: f"{x:.2f} %"),
    ("instructions", "smsp__inst_executed.sum", lambda x: f"{x:,.0f}"),
]


class Command(BaseCommand):
    help = "Profile the example submission the way popcorn-cli does, and show what came back."

    def handle(self, *args: Any, **options: Any) -> None:
        gpu = next((gpu for gpu in settings.GPU_TYPES.values() if gpu.ncu), None)
        if gpu is None:
            raise CommandError("GPU_TYPES names no GPU that can be profiled on")
        if gpu.runner == "recorded":
            self.stdout.write(
                "No GPU with ncu is here: a recorded archive with a synthetic report is replayed, "
                "nothing is measured.\n"
            )
        login = prepare_machine()
        supervisor = Supervisor("127.0.0.1", free_port())
        supervisor.start()
        try:
            self.profile_example(PopcornClient(supervisor.address, login.cli_id), gpu.name)
        except ProfileFailed as error:
            raise CommandError(f"the profile failed: {error}") from error
        finally:
            supervisor.stop()

    def profile_example(self, client: PopcornClient, gpu: str) -> None:
        self.stdout.write(f"POST /profile/{LEADERBOARD}/{gpu} with {SUBMISSION.name}")
        request_id, result = client.profile(SUBMISSION, LEADERBOARD, gpu, self.say)
        files = extract_captures(result, settings.DATA_DIR / "demo" / request_id)
        facts = client.show(request_id)
        self.print_captures(facts)
        self.stdout.write("\nfiles:")
        for path in itertools.chain.from_iterable(files.values()):
            self.stdout.write(f"  {os.path.relpath(path)}")
        if facts["verdict"] == "failed" or len(files) != len(facts["captures"]):
            raise CommandError("not every benchmark gave a capture")
        self.stdout.write("\n`make serve` shows the same captures to operators.")

    def say(self, message: str) -> None:
        self.stdout.write(f"  {message}")
        self.stdout.flush()

    def print_captures(self, facts: dict[str, Any]) -> None:
        origin = f"  [{facts['result_origin']}]" if facts["result_origin"] else ""
        for capture in facts["captures"]:
            self.stdout.write(
                f"\nprofile.{capture['benchmark_index']}: {capture['spec']}{origin}\n"
                f"{capture['gpu_name']}, NCU {capture['ncu_version']} (read from the report)"
            )
            rows = [["kernel", *(heading for heading, _, _ in COLUMNS)]]
            rows += [[k["name"], *map(show_metric(k), COLUMNS)] for k in capture["kernels"]]
            widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
            for row in rows:
                cells = (text.rjust(w) for text, w in zip(row[1:], widths[1:], strict=True))
                self.stdout.write(f"  {row[0].ljust(widths[0])}  {'  '.join(cells)}")


def show_metric(kernel: dict[str, Any]) -> Any:
    """A function that shows one column of this kernel; what the report lacks is said, not 0."""

    def show(column: Any) -> str:
        _, metric, form = column
        value = kernel["metrics"].get(metric, {}).get("value")
        return "n/a" if value is None else form(value)

    return show


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])
