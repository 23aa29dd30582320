"""What the fake runner is to do with a run, and the result that it makes up."""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

from runners.gpu import envelope
from runners.gpu.contract import (
    CaptureRecord,
    Failure,
    JobConfig,
    JobOutcome,
    Mode,
    RunRecord,
    RunResult,
    System,
)

ORIGIN = "synthetic"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedFault:
    """A RunnerFault for the next `times` calls. `after_start` (start alone): the run goes on."""

    kind: str
    message: str = "a fault that was planned"
    retryable: bool = False
    times: int = 1
    after_start: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How a run goes. Times are seconds; the default succeeds at once.

    `archive` is the zip that each benchmark gets, `envelope` a file handed back as it is, in place
    of all that follows from the config. `failures` fails single runs by their key.
    """

    start_s: float = 0  # before the run exists
    answer_s: float = 0  # the run exists, and `start` has not returned yet
    run_s: float = 0
    cancel_s: float = 0  # how long the provider takes to end a run
    phases: tuple[str, ...] = ("compiling", "capturing")
    start_faults: tuple[PlannedFault, ...] = ()  # consumed start by start of one job
    poll_faults: tuple[PlannedFault, ...] = ()  # consumed poll by poll of one run
    archive: str = ""
    envelope: str = ""
    passed: bool = True
    failures: dict[str, Failure] = field(default_factory=dict)
    failure: Failure | None = None  # of the job as a whole


def fault_of(faults: tuple[PlannedFault, ...], call: int) -> PlannedFault | None:
    """The fault of the `call`-th call, counted from zero."""
    for fault in faults:
        if call < fault.times:
            return fault
        call -= fault.times
    return None


def write_envelope(target: Path, config: JobConfig, plan: Plan) -> None:
    """The result that `plan` wants for `config`."""
    if plan.envelope:
        target.write_bytes(Path(plan.envelope).read_bytes())
        return
    keys = [] if plan.failure else _run_keys(config)
    with _archive_of(plan) as archive:
        runs = {key: _record(key, config, plan, archive) for key in keys}
        outcome = JobOutcome(
            job_id=config.job_id,
            attempt=config.attempt,
            system=System(gpu="fake GPU", device_count=1, platform="fake runner"),
            runs=runs,
            failure=plan.failure,
            origin=ORIGIN,
        )
        named = [record.capture.archive for record in runs.values() if record.capture]
        envelope.write(target, outcome, dict.fromkeys(named, archive))


def _run_keys(config: JobConfig) -> list[str]:
    if config.mode is Mode.PROFILE:
        return [f"profile.{index}" for index in config.selected]
    return [str(config.mode)]


def _record(key: str, config: JobConfig, plan: Plan, archive: Path) -> RunRecord:
    now = datetime.now(UTC).isoformat()
    if key in plan.failures:
        return RunRecord(start=now, end=now, failure=plan.failures[key])
    run = RunResult(
        success=True,
        passed=plan.passed,
        command="fake runner",
        stdout="Nothing ran: this is the fake runner of the tests.",
        stderr="",
        exit_code=0 if plan.passed else 112,
        duration=0.1,
        result={"check": "pass" if plan.passed else "fail", "benchmark-count": "1"},
    )
    capture = _capture(key, archive) if config.mode is Mode.PROFILE else None
    return RunRecord(start=now, end=now, run=run, capture=capture)


def _capture(key: str, archive: Path) -> CaptureRecord:
    content = archive.read_bytes()
    return CaptureRecord(
        profiler="Nsight-Compute",
        ncu_version="2025.2.1",
        launches=1,
        archive=f"{key}.zip",
        archive_bytes=len(content),
        archive_sha256=hashlib.sha256(content).hexdigest(),
        extract="synthetic: made by the fake runner",
    )


@contextmanager
def _archive_of(plan: Plan) -> Iterator[Path]:
    if plan.archive:
        yield Path(plan.archive)
        return
    with TemporaryDirectory(prefix="fake-archive-") as folder:
        path = Path(folder) / "capture.zip"
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for name in ("profile.ncu-rep", "ncu-details.txt", "ncu-details.csv"):
                archive.writestr(name, f"synthetic {name}\n")
        yield path
