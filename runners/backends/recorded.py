"""Replays one recorded archive for each selected benchmark, and says so wherever it shows.

For demonstrations and the development of clients: nothing of the submission runs. An external id
holds all that a poll needs but the config, which lies in DATA_DIR/recorded-runs/<external id>/.
"""

from __future__ import annotations

import asyncio
import hashlib
import shutil
import time
import zipfile
from datetime import UTC, datetime
from pathlib import Path

from django.conf import settings

from runners.backends.base import Finished, KnownRun, Pending
from runners.exceptions import RunnerFault
from runners.gpu import envelope, exports, wire
from runners.gpu.contract import (
    CaptureRecord,
    JobConfig,
    JobOutcome,
    Mode,
    RunRecord,
    RunResult,
    System,
    read_config,
)
from runners.gpu.report_framing import FramingError, read_framing
from runners.scratch import scratch_folder

MEMBERS = ("profile.ncu-rep", "ncu-details.txt", "ncu-details.csv")
RUN_S = 2.0


class RecordedRunner:
    name = "recorded"

    def __init__(self) -> None:
        self.root = Path(settings.DATA_DIR) / "recorded-runs"
        self.archive = Path(settings.RECORDED_ARCHIVE)

    async def start(self, gpu: str, config: JobConfig) -> str:
        if config.mode is not Mode.PROFILE:
            raise RunnerFault(
                f"The recorded runner only replays profiles, and {config.mode} was asked for.",
                kind="mode_not_offered",
                retryable=False,
            )
        external_id = f"{config.job_id}.{config.attempt}.{time.time_ns() // 10**6}"
        await asyncio.to_thread(self._save_config, external_id, config)
        return external_id

    async def poll(self, external_id: str) -> Pending | Finished:
        run = self.root / external_id
        elapsed = (datetime.now(UTC) - _started_at(external_id)).total_seconds()
        return await asyncio.to_thread(self._poll, run, elapsed)

    async def cancel(self, external_id: str) -> None:
        await self.release(external_id)

    async def release(self, external_id: str) -> None:
        await asyncio.to_thread(shutil.rmtree, self.root / external_id, ignore_errors=True)

    async def unclaimed(self, since: datetime) -> list[KnownRun]:
        names = await asyncio.to_thread(self._names)
        known = [KnownRun(name, _started_at(name)) for name in names]
        return [run for run in known if run.started_at >= since]

    async def queue_depth(self, gpu: str) -> int | None:
        return 0

    def _save_config(self, external_id: str, config: JobConfig) -> None:
        run = self.root / external_id
        run.mkdir(parents=True)
        (run / "config.json").write_bytes(wire.dumps(config))

    def _names(self) -> list[str]:
        return [run.name for run in self.root.iterdir()] if self.root.exists() else []

    def _poll(self, run: Path, elapsed: float) -> Pending | Finished:
        try:
            config = read_config((run / "config.json").read_bytes())
        except FileNotFoundError as error:
            raise RunnerFault(
                "There is no such recorded run.", kind="run_unknown", retryable=False
            ) from error
        phases = ["compiling", *(f"replaying benchmark {index}" for index in config.selected)]
        if elapsed < RUN_S:
            return Pending(phases[max(0, int(elapsed / RUN_S * len(phases)))])
        result = run / "result.envelope"
        if not result.exists():
            try:
                self._write_result(result, config)
            except (OSError, KeyError, zipfile.BadZipFile, FramingError) as error:
                raise RunnerFault(
                    "The archive to replay cannot be read.", kind="bad_recording", retryable=False
                ) from error
        return Finished(result)

    def _write_result(self, target: Path, config: JobConfig) -> None:
        content = self.archive.read_bytes()
        with scratch_folder("recorded") as folder:
            with zipfile.ZipFile(self.archive) as archive:
                report, details, _ = (Path(archive.extract(name, folder)) for name in MEMBERS)
            launches, extract = read_framing(report).launches, exports.extract(details)
            with details.open(encoding="utf-8", errors="replace") as lines:
                is_synthetic = "synthetic" in lines.readline().lower()
        origin = "recorded (synthetic)" if is_synthetic else "recorded"
        runs = {}
        for index in config.selected:
            capture = CaptureRecord(
                profiler="Nsight-Compute",
                ncu_version="",  # nobody asked one: the report says what wrote it
                launches=launches,
                archive=f"profile.{index}.zip",
                archive_bytes=len(content),
                archive_sha256=hashlib.sha256(content).hexdigest(),
                extract=extract,
            )
            runs[f"profile.{index}"] = _record(capture, origin)
        outcome = JobOutcome(
            job_id=config.job_id,
            attempt=config.attempt,
            system=System(gpu=f"none: {origin}", platform=origin),
            runs=runs,
            origin=origin,
        )
        archives = {run.capture.archive: self.archive for run in runs.values() if run.capture}
        envelope.write(target, outcome, archives)


def _record(capture: CaptureRecord, origin: str) -> RunRecord:
    now = datetime.now(UTC).isoformat()
    run = RunResult(
        success=True,
        passed=True,
        command="",
        stdout=f"This capture is {origin}: the submission was not run, and no GPU was used.\n",
        stderr="",
        exit_code=0,
        duration=0.0,
        result={"benchmark-count": "1", "check": "pass"},
    )
    return RunRecord(start=now, end=now, run=run, capture=capture)


def _started_at(external_id: str) -> datetime:
    milliseconds = external_id.rpartition(".")[2]
    if not milliseconds.isdecimal():
        raise RunnerFault("There is no such recorded run.", kind="run_unknown", retryable=False)
    return datetime.fromtimestamp(int(milliseconds) / 1000, UTC)
