"""Judge one capture by what is inside its report, and gather what is kept of it.

What the GPU side says is taken for the run of the evaluator; what was measured, and with what, is
read from the report alone (architecture.md, Provenance).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Any

from django.utils import timezone

from profiling.models import Capture, ProfileRequest
from profiling.reports.archives import ArchiveError, unpack_report
from profiling.reports.facts import MetricState, Problem, ReportFacts
from profiling.reports.reader import read_report
from profiling.reports.session import Session
from runners.gpu import wire
from runners.gpu.contract import Failure, FailureKind, NoteKind, RunRecord, case_line
from runners.gpu.envelope import Envelope
from runners.models import Job


class ServerNote(StrEnum):
    """Notes of our own, beside the GPU side's `NoteKind`: the capture is good, but degraded."""

    PROFILER_VERSION_DIFFERS = "profiler_version_differs"
    GPU_DIFFERS = "gpu_differs"
    COUNTERS_UNAVAILABLE = "counters_unavailable"


# Notes that say that something is missing.
INCOMPLETE = frozenset(
    {NoteKind.LAUNCH_LIMIT_REACHED, NoteKind.TIME_LIMIT_REACHED, NoteKind.EXPORT_FAILED}
)
MESSAGE_CHARS = 10_000
COLUMN_MAX = 2**31 - 1
OURS = "This is a fault of the service, not of the submission."
_NO_RECORD = Failure(
    kind=FailureKind.GPU_SIDE_CRASHED,
    message=f"The GPU side sent no result for this benchmark. {OURS}",
)
_NO_REPORT = Failure(
    kind=FailureKind.GPU_SIDE_CRASHED,
    message=f"The GPU side sent neither a report nor a reason for its absence. {OURS}",
)
_RELEASE = re.compile(r"\d+\.\d+\.\d+")
# What a report says of the launch, the device and the profiler is no counter.
_NO_COUNTER = ("launch__", "device__", "profiler__")


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptureFacts:
    """`columns` are all of the Capture's but its keys; `archive` names the envelope's part.

    There may be an archive for a failed capture too.
    """

    benchmark_index: int
    archive: str
    columns: dict[str, Any]

    @property
    def failed(self) -> bool:
        return bool(self.columns["status"] == Capture.Status.FAILED)

    @property
    def is_incomplete(self) -> bool:
        return any(note["kind"] in INCOMPLETE for note in self.columns["notes"])


def judge_capture(
    request: ProfileRequest, job: Job, index: int, envelope: Envelope, folder: Path
) -> CaptureFacts:
    """All about benchmark `index`; its report is unpacked into `folder`.

    Whatever is wrong with what came back makes a failed capture. Raises OSError only.
    """
    record = envelope.outcome.runs.get(f"profile.{index}")
    if record is None:
        now = timezone.now()
        record = RunRecord(
            start=now.isoformat(),
            end=now.isoformat(),
            failure=envelope.outcome.failure or _NO_RECORD,
        )
    facts = ReportFacts()
    problem: Failure | None = _NO_REPORT
    if record.capture is not None:
        facts, problem = _read(envelope, record.capture.archive, folder / f"{index}.ncu-rep")
    failure = record.failure or problem
    assert request.revision is not None
    return CaptureFacts(
        benchmark_index=index,
        archive=record.capture.archive if record.capture else "",
        columns={
            "spec": case_line(request.revision.definition.benchmarks[index]),
            **_outcome_columns(record, failure, job),
            **_report_columns(facts),
            "notes": [
                *wire.encode(record.notes),
                *(
                    {"kind": str(kind), "message": said}
                    for kind, said in _notes(request, record, facts)
                ),
            ],
        },
    )


def _read(envelope: Envelope, archive: str, target: Path) -> tuple[ReportFacts, Failure | None]:
    packed = target.with_suffix(".zip")
    try:
        envelope.extract(archive, packed)
        unpack_report(packed, target)
        facts = read_report(target)
    except ArchiveError as error:
        said = f"What came back cannot be opened: {error}. {OURS}"
        return ReportFacts(), Failure(kind=FailureKind.REPORT_UNREADABLE, message=said)
    finally:
        packed.unlink(missing_ok=True)
        target.unlink(missing_ok=True)
    return facts, _failure_of(facts)


def _failure_of(facts: ReportFacts) -> Failure | None:
    """Only launches with names, counted inside the report, make a capture (FR-04)."""
    if facts.problem == Problem.NONE:
        return None
    if facts.problem == Problem.EMPTY:
        return Failure(
            kind=FailureKind.NO_KERNEL_CAPTURED, message=f"No kernel was captured: {facts.detail}."
        )
    return Failure(
        kind=FailureKind.REPORT_UNREADABLE,
        message=f"The report cannot be read: {facts.detail}. {OURS}",
    )


def _outcome_columns(record: RunRecord, failure: Failure | None, job: Job) -> dict[str, Any]:
    began = job.running_at or job.created_at
    return {
        "status": Capture.Status.FAILED if failure else Capture.Status.CAPTURED,
        "failure_kind": failure.kind if failure else "",
        "failure_fault": failure.kind.fault if failure else "",
        "failure_message": failure.message[:MESSAGE_CHARS] if failure else "",
        "started_at": _time(record.start, began),
        "finished_at": _time(record.end, timezone.now()),
        "passed": _verdict(record),
        "run": wire.encode(record.run),
        "compilation": wire.encode(record.compilation),
        "extract": record.capture.extract if record.capture else "",
    }


def _report_columns(facts: ReportFacts) -> dict[str, Any]:
    told = facts.to_json()
    return {
        "ncu_version": facts.session.ncu_version,
        "cuda_version": facts.session.cuda_version,
        "driver_version": facts.session.driver_version,
        "gpu_name": facts.session.gpu_name,
        "launch_count": _count(facts.launch_count),
        "replay_passes": _count(facts.replay_passes),
        "kernels": told["launches"],
        "unavailable_counters": told["unavailable"],
    }


def _verdict(record: RunRecord) -> bool | None:
    if record.run is None or "check" not in record.run.result:
        return None
    return record.run.passed


def _time(text: str, otherwise: datetime) -> datetime:
    """An aware time of the GPU side, or ours where it sent something else."""
    try:
        told = datetime.fromisoformat(text)
    except ValueError:
        return otherwise
    # Far from now, a time zone could carry it out of what a database can hold.
    return told if told.tzinfo is not None and 2000 < told.year < 9000 else otherwise


def _count(value: int | None) -> int | None:
    """A number from a report, as far as an integer column takes it."""
    return value if value is not None and 0 <= value <= COLUMN_MAX else None


def _notes(
    request: ProfileRequest, record: RunRecord, facts: ReportFacts
) -> Iterator[tuple[ServerNote, str]]:
    """Where the report is not what was asked for (FR-10, FR-23)."""
    if record.capture is None or facts.problem != Problem.NONE:
        return
    if said := _version_note(request.ncu_version_wanted, record.capture.ncu_version, facts.session):
        yield ServerNote.PROFILER_VERSION_DIFFERS, said
    if facts.session.gpu_name and not _names_gpu(facts.session.gpu_name, request.gpu):
        yield (
            ServerNote.GPU_DIFFERS,
            f"{request.gpu} was asked for, the report says {facts.session.gpu_name}.",
        )
    if unavailable := _unavailable_counters(facts):
        listed = ", ".join(f"{name} ({why})" for name, why in unavailable.items())
        yield ServerNote.COUNTERS_UNAVAILABLE, f"Counters without a usable value: {listed}."


def _version_note(wanted: str, used: str, session: Session) -> str:
    told = session.ncu_release
    named = session.ncu_version or "a version that it does not name"
    if wanted and told != wanted:
        return f"Nsight Compute {wanted} was wanted, the report was made with {named}."
    found = _RELEASE.search(used)
    if found and told and found[0] != told:
        return f"The profiler calls itself {used[:100]}, the report was made with {named}."
    return ""


def _names_gpu(told: str, asked: str) -> bool:
    """Whether "NVIDIA A100-SXM4-80GB" is an "A100"; a suffix such as "_Nebius" is the provider's."""
    model = re.escape(asked.partition("_")[0])
    return bool(re.search(rf"(?<![a-z0-9]){model}(?![a-z0-9])", told, re.IGNORECASE))


def _unavailable_counters(facts: ReportFacts) -> dict[str, str]:
    """The key counters that some launch has no value for, by name, and why."""
    return {
        name: metric.state
        for launch in facts.launches
        for name, metric in launch.metrics.items()
        if metric.state != MetricState.OK and not name.startswith(_NO_COUNTER)
    }
