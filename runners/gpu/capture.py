"""One capture: an evaluator under ncu for one benchmark, judged, exported and archived."""

from __future__ import annotations

import stat
from dataclasses import dataclass, replace
from pathlib import Path

from runners.gpu import archive, diagnosis, exports, ncu, process
from runners.gpu.context import Context
from runners.gpu.contract import (
    CaptureOptions,
    CaptureRecord,
    Failure,
    FailureKind,
    Note,
    NoteKind,
    RunResult,
)
from runners.gpu.evaluator import (
    Program,
    evaluator_environment,
    run_result,
    verdict_of,
    with_hints,
)
from runners.gpu.output import HeadAndTail, shorten
from runners.gpu.report_framing import Framing, FramingError, read_framing

PROFILER = "Nsight-Compute"
LOG = "ncu.log"
LOG_BYTES = 2**18
MAX_GRACE_S = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Captured:
    """What became of a capture; `record` and `path` are there for one that is worth keeping."""

    run: RunResult
    failure: Failure | None = None
    notes: tuple[Note, ...] = ()
    record: CaptureRecord | None = None
    path: Path | None = None


def capture(program: Program, profiler: ncu.Profiler, index: int) -> Captured:
    """Profile benchmark `index`. Raises Failed when the job's time is used up."""
    context = program.context
    options = context.config.capture or CaptureOptions()
    limit_s = context.config.limits.capture_s
    allowance = context.allow(limit_s, FailureKind.TIME_LIMIT)
    prepared = program.prepare(f"profile-{index}", [context.config.benchmarks[index]])
    # Fresh, and in no variable of the program's environment: a report that a submission leaves
    # where one is usually written is never taken for ours.
    private = context.workspace.private_folder()
    finished = process.run(
        ncu.capture_command(
            profiler,
            options,
            report=private / exports.REPORT,
            log=private / LOG,
            program=prepared.command("profile"),
        ),
        cwd=prepared.folder,
        env=evaluator_environment(context, POPCORN_NCU="1"),
        bounds=context.bounds(allowance.seconds, grace_s=min(MAX_GRACE_S, limit_s / 10)),
        identity=context.identity,
        results_variable="POPCORN_FD",
    )
    log = _read_log(private / LOG)
    framing, problem = _read_report(private / exports.REPORT, context.config.limits.file_bytes)
    evidence = diagnosis.Evidence(
        options=options,
        allowance=allowance,
        messages=finished.stdout if log is None else log,
        exit_code=finished.exit_code,
        timed_out=finished.timed_out,
        out_of_memory=finished.out_of_memory,
        verdict=verdict_of(finished),
        framing=framing,
        report_problem=problem,
    )
    failure = diagnosis.failure_of(evidence)
    run = run_result(finished, evidence.evaluator_exit_code, failure)
    if log:
        shown = shorten(log, context.config.limits.output_bytes)
        run = replace(run, stdout=f"{run.stdout}\n[messages of ncu]\n{shown}".lstrip("\n"))
    if failure:
        return Captured(run=replace(run, success=False), failure=failure)
    return _keep(context, profiler, index, private, run, evidence)


def _keep(
    context: Context,
    profiler: ncu.Profiler,
    index: int,
    private: Path,
    run: RunResult,
    evidence: diagnosis.Evidence,
) -> Captured:
    # A folder that was not there while the submission ran, so nothing in it can be its work.
    folder = context.workspace.private_folder()
    (private / exports.REPORT).rename(folder / exports.REPORT)
    problems = exports.export_details(context, profiler, folder)
    notes = (
        *diagnosis.notes_of(evidence),
        *(Note(kind=NoteKind.EXPORT_FAILED, message=problem) for problem in problems),
    )
    packed = archive.pack(folder, context.workspace.archives / f"profile.{index}.zip")
    return Captured(
        run=replace(
            run,
            success=run.success and not problems,
            stderr=with_hints(run.stderr, [note.message for note in notes]),
        ),
        notes=notes,
        record=CaptureRecord(
            profiler=PROFILER,
            ncu_version=profiler.version,
            launches=evidence.launches,
            archive=packed.path.name,
            archive_bytes=packed.size,
            archive_sha256=packed.sha256,
            extract=exports.extract(folder / exports.DETAILS_TEXT),
        ),
        path=packed.path,
    )


def _is_file(path: Path) -> bool:
    """No link, and nothing that blocks or never ends when it is read."""
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except FileNotFoundError:
        return False


def _read_log(path: Path) -> str | None:
    """None where ncu wrote no log, as one that is too old for it."""
    if not _is_file(path):
        return None
    kept = HeadAndTail(LOG_BYTES)
    with path.open("rb") as log:
        while piece := log.read(2**16):
            kept.add(piece)
    return kept.text()


def _read_report(path: Path, max_bytes: int) -> tuple[Framing | None, Failure | None]:
    if not _is_file(path):
        return None, None
    size = path.stat().st_size
    # The limit on files ends the profiler while it writes, so it leaves a file of just that size.
    if size >= max_bytes:
        return None, Failure(
            kind=FailureKind.REPORT_TOO_LARGE,
            message=f"The report has {size} bytes, {max_bytes} is the limit. Fewer launches, or a "
            "kernel name, make it smaller.",
        )
    try:
        return read_framing(path), None
    except FramingError as error:
        return None, Failure(
            kind=FailureKind.REPORT_UNREADABLE,
            message=f"The report that ncu wrote is damaged: {error}. {ncu.OURS}",
        )
