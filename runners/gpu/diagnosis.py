"""Judge a capture by what is in its report, and say whose fault it is when nothing is.

Exit code 0 and a file prove nothing: only launches counted inside the report do.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from runners.gpu import ncu
from runners.gpu.context import Allowance
from runners.gpu.contract import CaptureOptions, Failure, FailureKind, Note, NoteKind
from runners.gpu.evaluator import (
    SUCCESS_EXIT_CODES,
    USAGE_EXIT_CODE,
    failure_of_exit_code,
    out_of_memory,
)
from runners.gpu.report_framing import Framing

MAX_NAMES_SHOWN = 20
MAX_LINE = 300

PROFILING_LINE = re.compile(r'^==PROF== Profiling "(.*)" - \d+(.*)$', re.MULTILINE)
ERROR_LINE = re.compile(r"^==ERROR== (.*)$", re.MULTILINE)
APPLICATION_EXIT_CODE = re.compile(r"application returned an error code \((-?\d+)\)")
NO_PERMISSION = re.compile(r"^==ERROR== .*ERR_NVGPUCTRPERM", re.MULTILINE)
REPLAY_OUT_OF_MEMORY = re.compile(r"Failed to save memory|bad allocation|bad_alloc", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """All that is known of a capture once the profiler has ended."""

    options: CaptureOptions
    allowance: Allowance
    messages: str  # the profiler's own
    exit_code: int  # the profiler's own
    timed_out: bool
    out_of_memory: bool  # main memory: the watch killed one of its processes
    verdict: str | None  # the evaluator's `check`
    framing: Framing | None
    report_problem: Failure | None  # why there is no framing, although there is a file

    @property
    def launches(self) -> int:
        return self.framing.launches if self.framing and not self.framing.nameless else 0

    @property
    def has_content(self) -> bool:
        """Kernel launches, or whole graphs, which a report may hold in their place."""
        return self.launches > 0 or self._graphs_only

    @property
    def _graphs_only(self) -> bool:
        return bool(self.framing and self.framing.launches == 0 and self.framing.graph_results)

    @property
    def evaluator_exit_code(self) -> int:
        """As ncu tells it, for its own exit code may also be about itself."""
        told = APPLICATION_EXIT_CODE.findall(self.messages)
        return int(told[-1]) if told else self.exit_code

    @property
    def program_failed(self) -> bool:
        """A verdict proves that the evaluator came to its end, whatever ncu says afterwards."""
        return self.evaluator_exit_code not in SUCCESS_EXIT_CODES and self.verdict is None

    @property
    def profiler_errors(self) -> list[str]:
        lines = ERROR_LINE.findall(self.messages)
        return [line[:MAX_LINE] for line in lines if not APPLICATION_EXIT_CODE.search(line)]


def failure_of(evidence: Evidence) -> Failure | None:
    """None for a capture that is worth keeping; `notes_of` then says what it lacks."""
    if evidence.has_content and (evidence.timed_out or not evidence.program_failed):
        return None
    for find in (
        _no_permission,
        _replay_out_of_memory,
        _too_large,
        _main_memory,
        _time_limit,
        _program_failed,
        _no_report,
    ):
        if failure := find(evidence):
            return failure
    return _nothing_captured(evidence)


def notes_of(evidence: Evidence) -> Iterator[Note]:
    if evidence.timed_out:
        yield Note(
            kind=NoteKind.TIME_LIMIT_REACHED,
            message=f"Partial: the time limit ended the capture. Launches captured before: "
            f"{evidence.launches}. {_slow_text(evidence)}",
        )
    if evidence.launches >= ncu.launch_count(evidence.options):
        yield Note(
            kind=NoteKind.LAUNCH_LIMIT_REACHED,
            message=f"Limit reached: {evidence.launches} captured, more may follow. A kernel name "
            "or a higher launch count reaches later kernels.",
        )
    if evidence.framing and (graphs := evidence.framing.graph_results):
        yield Note(
            kind=NoteKind.GRAPH_LAUNCHES,
            message=f"CUDA graphs that were profiled as a whole: {graphs}. Single kernel launches: "
            f"{evidence.launches}. Kernel filters do not apply to graphs.",
        )
    if evidence.verdict is None:
        yield Note(kind=NoteKind.NO_VERDICT, message="The evaluator gave no verdict in this run.")
    elif evidence.verdict != "pass":
        yield Note(
            kind=NoteKind.WRONG_RESULT,
            message="The evaluator's check failed: this is a profile of a wrong result.",
        )
    if errors := evidence.profiler_errors:
        yield Note(
            kind=NoteKind.PROFILER_ERRORS,
            message=f"Errors that ncu reported: {len(errors)}. The first: {errors[0]}",
        )
    elif evidence.evaluator_exit_code not in SUCCESS_EXIT_CODES and not evidence.timed_out:
        yield Note(
            kind=NoteKind.PROFILER_ERRORS,
            message=f"The run ended with exit code {evidence.evaluator_exit_code}, although the "
            "evaluator had come to its verdict.",
        )


def _no_permission(evidence: Evidence) -> Failure | None:
    if not NO_PERMISSION.search(evidence.messages):
        return None
    return Failure(
        kind=FailureKind.COUNTERS_NOT_PERMITTED,
        message="The machine does not permit access to the GPU's performance counters "
        f"(ERR_NVGPUCTRPERM). {ncu.OURS} Sending it again does not help.",
    )


def _replay_out_of_memory(evidence: Evidence) -> Failure | None:
    if not REPLAY_OUT_OF_MEMORY.search(evidence.messages):
        return None
    return Failure(
        kind=FailureKind.REPLAY_OUT_OF_MEMORY,
        message="Too much memory is in use for kernel replay: ncu saves all memory that a kernel "
        "may write, and restores it before each pass. Profile a smaller benchmark, or let the "
        "submission hold less device memory.",
    )


def _too_large(evidence: Evidence) -> Failure | None:
    problem = evidence.report_problem
    return problem if problem and problem.kind is FailureKind.REPORT_TOO_LARGE else None


def _main_memory(evidence: Evidence) -> Failure | None:
    """ncu itself tells a kill as an exit code, or waits for good with those that were spared."""
    failed = evidence.timed_out or evidence.program_failed
    return out_of_memory() if evidence.out_of_memory and failed else None


def _time_limit(evidence: Evidence) -> Failure | None:
    if not evidence.timed_out:
        return None
    return Failure(
        kind=evidence.allowance.kind,
        message=f"The capture did not end within {evidence.allowance.seconds:g} s. "
        + _slow_text(evidence),
    )


def _slow_text(evidence: Evidence) -> str:
    where = ""
    if lines := PROFILING_LINE.findall(evidence.messages):
        name, progress = lines[-1]
        verb = "It stopped after" if "passes" in progress else "It stopped in"
        where = f'{verb} kernel "{name[:MAX_LINE]}". '
    return (
        f"{where}Profiling serialises kernel launches and replays each of them for many counter "
        "passes: kernels that wait for one another never end, and others take many times as long."
    )


def _program_failed(evidence: Evidence) -> Failure | None:
    exit_code = evidence.evaluator_exit_code
    if not evidence.program_failed:
        return None
    if exit_code == USAGE_EXIT_CODE:
        return Failure(
            kind=FailureKind.PROFILING_NOT_OFFERED,
            message="This task does not offer profiling: its evaluator does not know the mode "
            "(exit code 2).",
        )
    if evidence.profiler_errors and not APPLICATION_EXIT_CODE.search(evidence.messages):
        return Failure(
            kind=FailureKind.PROFILER_FAILED,
            message=f"ncu failed (exit code {exit_code}): {evidence.profiler_errors[0]}. "
            f"{ncu.OURS}",
        )
    return failure_of_exit_code(exit_code)


def _no_report(evidence: Evidence) -> Failure | None:
    if evidence.framing and evidence.framing.nameless:
        return Failure(
            kind=FailureKind.REPORT_UNREADABLE,
            message=f"The report that ncu wrote is damaged: {evidence.framing.nameless} launches "
            f"have no name. {ncu.OURS}",
        )
    return evidence.report_problem


def _nothing_captured(evidence: Evidence) -> Failure:
    options = evidence.options
    if options.ncu_kernel_name is not None:
        base = options.ncu_kernel_name_base or ncu.DEFAULT_NAME_BASE
        names = _available_kernels(evidence.messages)
        launched = ", ".join(names) if names else "none that ncu told of"
        return Failure(
            kind=FailureKind.FILTER_MATCHED_NOTHING,
            message=f"No kernel was captured: the filter {options.ncu_kernel_name!r} was compared "
            f"with the {base} name of each kernel and matched none. Launched were: {launched}.",
        )
    return Failure(
        kind=FailureKind.NO_KERNEL_CAPTURED,
        message="No kernel was captured: nothing was launched inside the range custom_kernel. "
        "The range belongs to one thread of one process: what other threads launch (backward "
        "passes run in one) or child processes launch is not in it.",
    )


def _available_kernels(messages: str) -> list[str]:
    """The names that ncu lists after "Available Kernels:", until its next message."""
    names = []
    _, _, listed = messages.partition("Available Kernels:")
    for line in listed.split("\n"):
        if line.startswith("=="):
            break
        if name := re.sub(r"^\d+\.\s+", "", line.strip()):
            names.append(name[:MAX_LINE])
    return names[:MAX_NAMES_SHOWN]
