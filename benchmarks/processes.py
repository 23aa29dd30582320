"""The service in its production form as processes, and what these take of the machine's memory."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from benchmarks.wire_client import Target
from kernelbot_site.supervisor import web_command
from tests.environment import GPU_TYPES
from tests.server.popcorn import SUBMISSION
from tests.server.service import Service, wait_for

# As in settings.py, where the tests hurry; changed by variables of the same names.
DEFAULTS = {
    "WATCH_EVERY_S": "0.2",
    "POLL_EVERY_S": "1",
    "STREAM_STATUS_EVERY_S": "15",
    "LEASE_S": "30",
}
IN_FLIGHT = 128
PARTS = ("web", "dispatcher")


class Production(Service):
    """Several web processes and a dispatcher that runs the instant fake runner.

    On PostgreSQL when DATABASE_URL names one (a database of its own is made and dropped).
    """

    def __init__(self, folder: Path, processes: int) -> None:
        gpu_types: dict[str, Any] = dict(GPU_TYPES)
        gpu_types["B200"] = gpu_types["B200"] | {"max_in_flight": IN_FLIGHT}
        chosen = {name: os.environ.get(name, value) for name, value in DEFAULTS.items()}
        super().__init__(folder, GPU_TYPES=json.dumps(gpu_types), **chosen)
        if self.env["DATABASE_URL"].startswith("postgres"):
            self.env["DATABASE_POOL_MAX"] = "8"
        self.processes = processes

    def start_web(self) -> None:
        command = web_command("127.0.0.1", self.port, self.processes)
        self._start("web", command, self.env)
        wait_for(lambda: self._process("web").poll() is not None or self._answers())
        assert self._process("web").poll() is None, self.log()

    def restart(self) -> None:
        for part in PARTS:
            self.stop(part)
        self.start_web()
        self.start_dispatcher()

    @property
    def target(self) -> Target:
        return Target(
            url=self.base_url,
            cli_id="alice-cli-id",
            leaderboard="rowsum",
            gpu="B200",
            submission=SUBMISSION,
        )


class Memory:
    """The highest PSS of each part with all its child processes, sampled while it is watched."""

    def __init__(self, service: Production) -> None:
        self.service = service
        self.peak = dict.fromkeys(PARTS, 0)
        self.peak_together = 0

    @asynccontextmanager
    async def watched(self) -> AsyncIterator[Memory]:
        task = asyncio.create_task(self._sample())
        try:
            yield self
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
            await asyncio.to_thread(self._take)

    async def _sample(self) -> None:
        while True:
            await asyncio.to_thread(self._take)
            await asyncio.sleep(0.2)

    def _take(self) -> None:
        now = {part: sum(map(pss_bytes, tree(self.service.pid(part)))) for part in PARTS}
        self.peak = {part: max(self.peak[part], now[part]) for part in PARTS}
        self.peak_together = max(self.peak_together, sum(now.values()))

    def told(self) -> dict[str, float]:
        told = {f"{part}_mb": round(size / 1e6, 1) for part, size in self.peak.items()}
        return told | {"together_mb": round(self.peak_together / 1e6, 1)}


def tree(pid: int) -> Iterator[int]:
    """The process and all that descend from it."""
    yield pid
    with suppress(OSError):  # it ended meanwhile
        for task in Path(f"/proc/{pid}/task").iterdir():
            for child in (task / "children").read_text().split():
                yield from tree(int(child))


def pss_bytes(pid: int) -> int:
    """The proportional set size: what the process costs the machine; 0 when it has ended."""
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    return 0
