"""Judge one capture by what is inside its report, and gather what is kept of it.

What the GPU side says is taken for the run of the evaluator; what was measured, and with what, is
read from the report alone (architecture.md, Provenance).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from django.utils import timezone

from leaderboards.stages import MESSAGE_CHARS, told_columns, told_failure
from profiling.models import Capture, CaptureDetails, ProfileRequest
from profiling.reports.archives import DETAILS_CSV, DETAILS_TEXT, ArchiveError, unpack_report
from profiling.reports.details import ReportDetails, pack
from profiling.reports.details_check import check_details, decoded
from profiling.reports.facts import Problem, ReportFacts
from profiling.reports.reader import read_report
from profiling.reports.text import storable
from profiling.reports.verdict import Asked, Code, Judgement, Verdict, judge
from runners.gpu import wire
from runners.gpu.contract import Failure, FailureKind, Note, NoteKind, RunRecord, case_line
from runners.gpu.envelope import Envelope
from runners.models import Job

# What read a report; `manage.py reread_reports` reads those of another reader again.
READER = f"ncu-report {version('ncu-report')}, reader 3"
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
# Kinds of notes that change no verdict.
DETAILS_MADE_HERE, DETAILS_DIFFER = "details_made_here", "details_differ"
# These are told by the capture's failure already.
_OF_THE_STATUS = frozenset(
    {Code.REPORT_EMPTY, Code.REPORT_UNREADABLE, Code.REPORT_MISSING, Code.RUN_FAILED}
)
_OF_THE_REPORT = frozenset({FailureKind.REPORT_UNREADABLE, FailureKind.NO_KERNEL_CAPTURED})


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptureFacts:
    """`columns` are all of the Capture's but its keys; `archive` names the envelope's part.

    There may be an archive for a failed capture too. `details` are None without a good report.
    """

    benchmark_index: int
    archive: str
    columns: dict[str, Any]
    details: ReportDetails | None

    @property
    def failed(self) -> bool:
        return bool(self.columns["status"] == Capture.Status.FAILED)


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
    facts: ReportFacts | None = None
    problem: Failure | None = _NO_REPORT
    told: list[dict[str, str]] = []
    if record.capture is not None:
        packed = folder / f"{index}.zip"
        envelope.extract(record.capture.archive, packed)
        facts, problem, told = read_archive(packed)
    failure = record.failure or problem
    judged = judge(
        facts,
        asked_for(request, record.capture.ncu_version if record.capture else ""),
        notes=record.notes,
        run_failed=record.failure is not None,
    )
    assert request.revision is not None
    return CaptureFacts(
        benchmark_index=index,
        archive=record.capture.archive if record.capture else "",
        columns={
            "spec": case_line(request.revision.definition.benchmarks[index]),
            **_outcome_columns(record, failure, job),
            **_report_columns(facts or ReportFacts()),
            **_verdict_columns(judged, [*wire.encode(record.notes), *told]),
        },
        details=facts.details if facts else None,
    )


def reread_capture(capture: Capture, packed: Path) -> CaptureFacts:
    """The same from the stored archive, which `packed` is a copy of and which this removes.

    What the GPU side said stays; a failure of the report alone is decided anew. `columns` are only
    those that a report decides. Raises OSError only.
    """
    facts, problem, told = read_archive(packed)
    ours = capture.failure_kind in _OF_THE_REPORT
    kept = [note for note in capture.notes if note["kind"] in list(NoteKind)]
    judged = judge(
        facts,
        asked_for(capture.request, ""),
        notes=tuple(Note(kind=NoteKind(note["kind"]), message=note["message"]) for note in kept),
        run_failed=bool(capture.failure_kind) and not ours,
    )
    columns = {**_report_columns(facts), **_verdict_columns(judged, [*kept, *told])}
    if ours or not capture.failure_kind:
        columns |= _failure_columns(problem)
    return CaptureFacts(
        benchmark_index=capture.benchmark_index, archive="", columns=columns, details=facts.details
    )


def keep_details(capture: Capture, details: ReportDetails | None) -> None:
    """In place of those of an earlier reading; for a transaction."""
    if details is None:
        CaptureDetails.objects.filter(capture=capture).delete()
        return
    packed = pack(details)
    CaptureDetails.objects.update_or_create(
        capture=capture,
        defaults={
            "schema": packed.schema,
            "reader": READER,
            "read_at": timezone.now(),
            "unpacked_bytes": packed.unpacked_bytes,
            "content": packed.content,
        },
    )


def forget_details(job: Job) -> None:
    """Of a deleted request: lines of its source stand among them."""
    CaptureDetails.objects.filter(capture__request__job=job).delete()


def request_verdict(captures: Sequence[tuple[bool, str]]) -> ProfileRequest.Verdict:
    """From whether each chosen benchmark failed, and the verdict of its report: the worst."""
    captured = [verdict for failed, verdict in captures if not failed]
    if not captured:
        return ProfileRequest.Verdict.FAILED
    if Verdict.DEGRADED in captured:
        return ProfileRequest.Verdict.DEGRADED
    if len(captured) < len(captures) or Verdict.PARTIAL in captured:
        return ProfileRequest.Verdict.PARTIAL
    return ProfileRequest.Verdict.COMPLETE


def asked_for(request: ProfileRequest, used: str) -> Asked:
    return Asked(
        gpu=request.gpu,
        ncu_version=request.ncu_version_wanted,
        ncu_version_used=used,
        kernel_name=request.ncu_kernel_name or "",
    )


def read_archive(packed: Path) -> tuple[ReportFacts, Failure | None, list[dict[str, str]]]:
    """What the report says, why it is no success, and notes on its exports; removes the archive."""
    report = packed.with_suffix(".ncu-rep")
    notes: list[dict[str, str]] = []
    try:
        exports = unpack_report(packed, report)
        facts = read_report(report)
        if facts.details is not None:
            notes = list(_export_notes(facts.details, exports))
    except ArchiveError as error:
        detail = f"what came back cannot be opened: {error}"
        facts = ReportFacts(problem=Problem.CUT, detail=detail)
    finally:
        packed.unlink(missing_ok=True)
        report.unlink(missing_ok=True)
    return facts, _failure_of(facts), notes


def _export_notes(details: ReportDetails, exports: dict[str, bytes]) -> Iterator[dict[str, str]]:
    """Where our own exports stand in, and where the runner's says other values than the report."""
    if missing := sorted({DETAILS_TEXT, DETAILS_CSV} - set(exports)):
        said = f"Not exported by the profiler: {', '.join(missing)}. This service makes it instead."
        yield {"kind": DETAILS_MADE_HERE, "message": said}
    if DETAILS_CSV not in exports:
        return
    checked = check_details(details, decoded(exports[DETAILS_CSV]))
    if checked.differing_count:
        said = (
            f"{DETAILS_CSV} has no rows."
            if not checked.rows
            else f"{DETAILS_CSV} differs from the report in {checked.differing_count} values: "
            f"{'; '.join(checked.differing)}."
        )
        yield {"kind": DETAILS_DIFFER, "message": storable(said, MESSAGE_CHARS)}


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
    return {
        **told_columns(record, failure, job),
        **_failure_columns(failure),
        "passed": _passed(record),
        "extract": record.capture.extract if record.capture else "",
    }


def _failure_columns(failure: Failure | None) -> dict[str, Any]:
    return {
        **told_failure(failure),
        "status": Capture.Status.FAILED if failure else Capture.Status.CAPTURED,
        "failure_fault": failure.kind.fault if failure else "",
    }


def _verdict_columns(judged: Judgement, notes: list[dict[str, str]]) -> dict[str, Any]:
    """Reasons that are no note of the GPU side's yet are told as notes too."""
    told = {note["kind"] for note in notes}
    ours = [
        {"kind": str(reason.code), "message": reason.message}
        for reason in judged.reasons
        if reason.code not in told and reason.code not in _OF_THE_STATUS
    ]
    return {
        "verdict": judged.verdict.value,
        "verdict_reasons": wire.encode(judged.reasons),
        "notes": [*notes, *ours],
    }


def _report_columns(facts: ReportFacts) -> dict[str, Any]:
    return {
        "ncu_version": facts.session.ncu_version,
        "cuda_version": facts.session.cuda_version,
        "driver_version": facts.session.driver_version,
        "gpu_name": facts.session.gpu_name,
        "launch_count": _count(facts.launch_count),
        "replay_passes": _count(facts.replay_passes),
        "kernels": facts.kernels_json(),
        "unavailable_counters": facts.unavailable_json(),
        "session": facts.session.to_json(),
    }


def _passed(record: RunRecord) -> bool | None:
    if record.run is None or "check" not in record.run.result:
        return None
    return record.run.passed


def _count(value: int | None) -> int | None:
    """A number from a report, as far as an integer column takes it."""
    return value if value is not None and 0 <= value <= COLUMN_MAX else None
