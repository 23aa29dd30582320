"""A runner for tests whose whole state is a folder, so that it works across processes.

    plan.json  plans/<job id>.json     what runs do (fake_plan.Plan); a job's own plan comes first
    calls.jsonl                        one line for each start, cancel and release
    runs/<external id>/                config.json, started, polls, cancelled, result.envelope

Unlike the local runner it has no idempotent start, as a real provider has none: a job that is
started twice shows as two lines.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import time
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from django.conf import settings

from runners.backends.base import Finished, KnownRun, Pending
from runners.backends.fake_plan import Plan, PlannedFault, fault_of, write_envelope
from runners.exceptions import RunnerFault
from runners.gpu import wire
from runners.gpu.contract import JobConfig, read_config

PLAN_BYTES = 2**20


class FakeRunner:
    name = "fake"

    def __init__(self, root: Path | None = None) -> None:
        self.root = root or Path(settings.FAKE_RUNNER_DIR)
        for folder in ("plans", "runs", "starts"):
            (self.root / folder).mkdir(parents=True, exist_ok=True)

    # --- Runner ---

    async def start(self, gpu: str, config: JobConfig) -> str:
        plan = self._plan_of(config.job_id)
        fault = fault_of(plan.start_faults, _count(self.root / "starts" / config.job_id))
        await asyncio.sleep(plan.start_s)
        if fault and not fault.after_start:
            raise _raised(fault)
        external_id = f"fake-{config.job_id}-{config.attempt}-{uuid.uuid4().hex[:8]}"
        self._make_run(external_id, gpu, config)
        await asyncio.sleep(plan.answer_s)
        if fault:
            raise _raised(fault)
        return external_id

    async def poll(self, external_id: str) -> Pending | Finished:
        run = self.root / "runs" / external_id
        if not _exists(run / "started") or _exists(run / "cancelled"):
            raise RunnerFault(
                f"the fake runner has no run {external_id}", kind="run_unknown", retryable=False
            )
        config = read_config((run / "config.json").read_bytes())
        plan = self._plan_of(config.job_id)
        if fault := fault_of(plan.poll_faults, _count(run / "polls")):
            raise _raised(fault)
        elapsed = time.time() - _started(run)
        if elapsed < plan.run_s:
            step = int(elapsed / plan.run_s * len(plan.phases))
            return Pending(plan.phases[step] if plan.phases else "")
        result = run / "result.envelope"
        if not _exists(result):  # the same bytes however often it is asked
            await asyncio.to_thread(write_envelope, result, config, plan)
        return Finished(result)

    async def cancel(self, external_id: str) -> None:
        run = self.root / "runs" / external_id
        if _exists(run):
            config = read_config((run / "config.json").read_bytes())
            await asyncio.sleep(self._plan_of(config.job_id).cancel_s)
            (run / "cancelled").touch()
        self._log("cancelled", external_id)

    async def release(self, external_id: str) -> None:
        self._log("released", external_id)
        shutil.rmtree(self.root / "runs" / external_id, ignore_errors=True)

    async def unclaimed(self, since: datetime) -> list[KnownRun]:
        known = []
        for run in self._runs():
            started_at = datetime.fromtimestamp(_started(run), UTC)
            if started_at >= since:
                known.append(KnownRun(run.name, started_at))
        return known

    async def queue_depth(self, gpu: str) -> int | None:
        return 0

    # --- What tests say and ask ---

    def plan(self, plan: Plan, *, job_id: object = None) -> None:
        """What runs do from now on: those of one job, or all that have no plan of their own."""
        target = self.root / (f"plans/{job_id}.json" if job_id else "plan.json")
        unfinished = target.with_suffix(f".{uuid.uuid4().hex}")
        unfinished.write_bytes(wire.dumps(plan))
        unfinished.replace(target)

    def calls(self, event: str, job_id: object = None) -> list[dict[str, Any]]:
        """The calls "started", "cancelled" or "released" so far, of one job or of all."""
        log = self.root / "calls.jsonl"
        lines = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
        return [
            line
            for line in lines
            if line["event"] == event and (job_id is None or str(job_id) in line["external_id"])
        ]

    def config_of(self, external_id: str) -> JobConfig:
        return read_config((self.root / "runs" / external_id / "config.json").read_bytes())

    def alive(self) -> list[str]:
        """External ids of runs that are not cancelled, released or at their end."""
        return [
            run.name
            for run in self._runs()
            if not (run / "cancelled").exists()
            and time.time() - _started(run)
            < self._plan_of(read_config((run / "config.json").read_bytes()).job_id).run_s
        ]

    def _plan_of(self, job_id: str) -> Plan:
        for path in (self.root / "plans" / f"{job_id}.json", self.root / "plan.json"):
            if path.exists():
                return wire.loads(Plan, path.read_bytes(), max_bytes=PLAN_BYTES)
        return Plan()

    def _runs(self) -> Iterator[Path]:
        return (run for run in (self.root / "runs").iterdir() if (run / "started").exists())

    def _make_run(self, external_id: str, gpu: str, config: JobConfig) -> None:
        run = self.root / "runs" / external_id
        run.mkdir()
        (run / "config.json").write_bytes(wire.dumps(config))
        (run / "started").write_text(str(time.time()))
        self._log("started", external_id, gpu=gpu)

    def _log(self, event: str, external_id: str, **more: str) -> None:
        line = json.dumps({"event": event, "external_id": external_id, "at": time.time()} | more)
        with (self.root / "calls.jsonl").open("a") as log:
            log.write(line + "\n")  # one write in append mode: lines of processes never mix


def _raised(fault: PlannedFault) -> RunnerFault:
    return RunnerFault(fault.message, kind=fault.kind, retryable=fault.retryable)


def _started(run: Path) -> float:
    return float((run / "started").read_text())


def _exists(path: Path) -> bool:
    return path.exists()


def _count(path: Path) -> int:
    """How often this was called before; one byte for each call."""
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        before = os.fstat(descriptor).st_size
        os.write(descriptor, b".")
    finally:
        os.close(descriptor)
    return before
