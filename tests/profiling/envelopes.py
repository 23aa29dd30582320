"""What a GPU side sends back, made by hand: real envelopes around synthetic reports."""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from profiling.job_handler import ProfileJobHandler
from runners.artifacts import store_artifact
from runners.gpu import envelope as envelopes
from runners.gpu.contract import (
    CaptureRecord,
    Failure,
    FailureKind,
    JobOutcome,
    RunRecord,
    RunResult,
    System,
)
from runners.handlers import Results
from runners.models import Artifact, Job
from tests.synthetic_reports import DEVICE, Launch, dimensions, write_report

START, END = "2026-11-30T12:00:00+00:00", "2026-11-30T12:00:07+00:00"
METRICS = {
    "gpu__time_duration.sum": 1000.0,
    "sm__warps_active.avg.pct_of_peak_sustained_active": 50.0,
    "sm__throughput.avg.pct_of_peak_sustained_elapsed": 40.0,
    "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed": 30.0,
    "lts__t_sector_hit_rate.pct": 20.0,
    "smsp__inst_executed.sum": 640.0,
    "profiler__replayer_passes": 39.0,
}


def a_launch(name: str | None = "rowsum_kernel", **metrics: Any) -> Launch:
    said = {**DEVICE, **dimensions((8, 1, 1), (256, 1, 1)), **METRICS, **metrics}
    return Launch(name=name, grid=(8, 1, 1), block=(256, 1, 1), metrics=said)


def make_archive(
    path: Path, launches: Sequence[Launch] | None = None, *, files: Any = None, **report: Any
) -> Path:
    """A capture's archive. `files` adds or replaces members, None leaves one out."""
    written = write_report(
        path.with_suffix(".ncu-rep"), [a_launch()] if launches is None else launches, **report
    )
    members: dict[str, bytes | None] = {
        "profile.ncu-rep": written.read_bytes(),
        "ncu-details.txt": b"details",
        "ncu-details.csv": b"a,b\n",
    }
    members |= files or {}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            if content is not None:
                archive.writestr(name, content)
    return path


def a_record(archive: str | None = None, **fields: Any) -> RunRecord:
    record = RunRecord(
        start=START,
        end=END,
        run=RunResult(
            success=True,
            passed=True,
            command="python3 eval.py profile cases.txt",
            stdout="",
            stderr="",
            exit_code=0,
            duration=7.0,
            result={"check": "pass", "benchmark-count": "1", "benchmark.0.spec": "size: 256"},
        ),
    )
    if archive:
        capture = CaptureRecord(
            profiler="Nsight-Compute",
            ncu_version="2025.2.1.0",
            launches=1,
            archive=archive,
            archive_bytes=1,
            archive_sha256="",
            extract="GPU Speed Of Light",
        )
        record = replace(record, capture=capture)
    return replace(record, **fields)


def a_failure(kind: FailureKind, message: str = "Why it failed.") -> RunRecord:
    return a_record(run=None, failure=Failure(kind=kind, message=message))


def write_envelope(
    target: Path, job: Job, runs: dict[str, RunRecord], archives: dict[str, Path], **fields: Any
) -> envelopes.Envelope:
    outcome = JobOutcome(
        job_id=str(job.pk),
        attempt=job.attempt,
        system=System(gpu="NVIDIA B200", device_count=1, runtime="CUDA", hostname="gpu-7"),
        runs=runs,
        **fields,
    )
    envelopes.write(target, outcome, archives)
    return envelopes.read(target)


def collect(job: Job, envelope: envelopes.Envelope) -> Results:
    """What a dispatcher does with an envelope, but for its moves."""
    handler = ProfileJobHandler()
    results = handler.read_results(job, envelope)
    artifacts: dict[str, Artifact] = {}
    for part in envelope.header.parts[1:]:
        path = envelope.path.with_name(f"stored-{part.name}")
        path.unlink(missing_ok=True)
        envelope.extract(part.name, path)
        artifacts[part.name] = store_artifact(
            job,
            part.name,
            path,
            size=part.size,
            sha256=part.sha256,
            content_type="application/zip",
        )
    handler.keep_results(job, results, artifacts)
    return results
