"""What a report is worth: whether all is there, and whether it is what was asked for.

Every reason is kept, and the worst decides (FR-01, FR-04, FR-10, FR-23).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from profiling.reports.details import MetricState
from profiling.reports.facts import KEY_METRICS, Problem, ReportFacts
from profiling.reports.session import Session
from profiling.reports.settings import CaptureSettings
from runners.gpu.contract import Note, NoteKind


class Verdict(StrEnum):
    """From the best to the worst."""

    COMPLETE = "complete"
    PARTIAL = "partial"
    DEGRADED = "degraded"
    EMPTY = "empty"
    UNREADABLE = "unreadable"
    MISSING = "missing"


SEVERITY = {verdict: place for place, verdict in enumerate(Verdict)}


class Code(StrEnum):
    """Why a capture is not complete; stored and sent as it is here."""

    LAUNCH_LIMIT_REACHED = "launch_limit_reached"
    TIME_LIMIT_REACHED = "time_limit_reached"
    EXPORT_FAILED = "export_failed"
    RUN_FAILED = "run_failed"
    LAUNCH_FAILED = "launch_failed"
    SECTIONS_MISSING = "sections_missing"
    COUNTERS_MISSING = "counters_missing"
    COUNTERS_UNAVAILABLE = "counters_unavailable"
    PROFILER_VERSION_DIFFERS = "profiler_version_differs"
    GPU_DIFFERS = "gpu_differs"
    OPTIONS_DIFFER = "options_differ"
    REPORT_EMPTY = "report_empty"
    REPORT_UNREADABLE = "report_unreadable"
    REPORT_MISSING = "report_missing"

    @property
    def verdict(self) -> Verdict:
        return _WORTH.get(self, Verdict.PARTIAL)


_WORTH = {
    Code.COUNTERS_UNAVAILABLE: Verdict.DEGRADED,
    Code.PROFILER_VERSION_DIFFERS: Verdict.DEGRADED,
    Code.GPU_DIFFERS: Verdict.DEGRADED,
    Code.OPTIONS_DIFFER: Verdict.DEGRADED,
    Code.REPORT_EMPTY: Verdict.EMPTY,
    Code.REPORT_UNREADABLE: Verdict.UNREADABLE,
    Code.REPORT_MISSING: Verdict.MISSING,
}

# Of the hardware counters without a usable value, this share makes a capture degraded.
UNUSABLE_SHARE = 0.1
COUNTERS_NAMED = 12
# `--set full` always has these; a report without any section was asked for metrics alone.
EXPECTED_SECTIONS = (
    *("SpeedOfLight", "ComputeWorkloadAnalysis", "MemoryWorkloadAnalysis", "SchedulerStats"),
    *("WarpStateStats", "InstructionStats", "LaunchStats", "Occupancy", "SourceCounters"),
)
DURATION = "gpu__time_duration.sum"
_RELEASE = re.compile(r"\d+\.\d+\.\d+")
# What a report says of the launch, the device and the profiler is no counter.
KEY_COUNTERS = tuple(
    name for name in KEY_METRICS if not name.startswith(("launch__", "device__", "profiler__"))
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What the capture was asked for; empty text is anything."""

    gpu: str
    ncu_version: str  # "2025.2.1"
    ncu_version_used: str = ""  # as the profiler called itself before it began
    kernel_name: str = ""
    clock_control: str = "none"
    cache_control: str = "all"
    replay_mode: str = "kernel"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    code: Code
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    verdict: Verdict
    reasons: tuple[Reason, ...]


def judge(
    facts: ReportFacts | None, asked: Asked, *, notes: tuple[Note, ...] = (), run_failed: bool
) -> Judgement:
    """`facts` are None without a report, `notes` are those of the GPU side."""
    reasons = tuple(_reasons(facts, asked, notes, run_failed=run_failed))
    worst = max((reason.code.verdict for reason in reasons), key=SEVERITY.__getitem__, default=None)
    return Judgement(verdict=worst or Verdict.COMPLETE, reasons=reasons)


def _reasons(
    facts: ReportFacts | None, asked: Asked, notes: tuple[Note, ...], *, run_failed: bool
) -> Iterator[Reason]:
    if facts is None:
        yield Reason(code=Code.REPORT_MISSING, message="No report came back.")
        return
    if facts.problem == Problem.EMPTY:
        yield Reason(code=Code.REPORT_EMPTY, message=f"No kernel was captured: {facts.detail}.")
    elif facts.problem != Problem.NONE:
        said = f"The report cannot be read: {facts.detail}."
        yield Reason(code=Code.REPORT_UNREADABLE, message=said)
    for note in notes:
        if note.kind in _LIMITS:
            yield Reason(code=Code(note.kind), message=note.message)
    if facts.problem != Problem.NONE:
        return
    if run_failed:
        said = "The program failed while it was captured: later launches may be missing."
        yield Reason(code=Code.RUN_FAILED, message=said)
    yield from _missing(facts)
    yield from _different(facts, asked)
    yield from _unavailable(facts)


# Notes of the GPU side that say that something is missing.
_LIMITS = frozenset(
    {NoteKind.LAUNCH_LIMIT_REACHED, NoteKind.TIME_LIMIT_REACHED, NoteKind.EXPORT_FAILED}
)


def _missing(facts: ReportFacts) -> Iterator[Reason]:
    assert facts.details is not None
    failed = [launch for launch in facts.details.launches if launch.failed]
    if facts.failed:
        named = ", ".join(f"{each.name} (launch {each.index})" for each in failed[:COUNTERS_NAMED])
        said = f"{facts.failed} of {facts.launch_count} launches failed: {named}."
        yield Reason(code=Code.LAUNCH_FAILED, message=said)
    sections = {section.identifier for section in facts.details.sections}
    if sections and (lacking := [each for each in EXPECTED_SECTIONS if each not in sections]):
        said = f"Sections of the full set are missing: {', '.join(lacking)}."
        yield Reason(code=Code.SECTIONS_MISSING, message=said)
    good = [launch for launch in facts.details.launches if not launch.failed]
    expected = KEY_COUNTERS if sections else (DURATION,)
    absent = [
        f"{name} ({KEY_METRICS[name]})"
        for name in expected
        if any(name not in launch.metrics for launch in good)
    ]
    if absent:
        said = f"Counters that were not collected: {', '.join(absent)}."
        yield Reason(code=Code.COUNTERS_MISSING, message=said)


def _different(facts: ReportFacts, asked: Asked) -> Iterator[Reason]:
    session = facts.session
    if said := _version_words(asked, session):
        yield Reason(code=Code.PROFILER_VERSION_DIFFERS, message=said)
    if session.gpu_name and not _names_gpu(session.gpu_name, asked.gpu):
        said = f"{asked.gpu} was asked for, the report says {session.gpu_name}."
        yield Reason(code=Code.GPU_DIFFERS, message=said)
    if differing := _differing_options(asked, session.settings):
        said = f"Not captured as it was asked for: {'; '.join(differing)}."
        yield Reason(code=Code.OPTIONS_DIFFER, message=said)


def _version_words(asked: Asked, session: Session) -> str:
    told = session.ncu_release
    named = session.ncu_version or "a version that it does not name"
    if asked.ncu_version and told != asked.ncu_version:
        return f"Nsight Compute {asked.ncu_version} was wanted, the report was made with {named}."
    found = _RELEASE.search(asked.ncu_version_used)
    if found and told and found[0] != told:
        used = asked.ncu_version_used[:100]
        return f"The profiler calls itself {used}, the report was made with {named}."
    return ""


def _names_gpu(told: str, asked: str) -> bool:
    """Whether "NVIDIA A100-SXM4-80GB" is an "A100"; a suffix such as "_Nebius" is the provider's."""
    model = re.escape(asked.partition("_")[0])
    return bool(re.search(rf"(?<![a-z0-9]){model}(?![a-z0-9])", told, re.IGNORECASE))


def _differing_options(asked: Asked, told: CaptureSettings) -> list[str]:
    """What a report does not tell is not held against it."""
    if not told.told_by:
        return []
    modes = ("clock_control", "cache_control", "replay_mode")
    found = [
        f"{mode.replace('_', ' ')} is {getattr(told, mode)}, asked for was {getattr(asked, mode)}"
        for mode in modes
        if getattr(told, mode) not in ("", getattr(asked, mode))
    ]
    if _first_word(told.kernel_name) != _first_word(asked.kernel_name):
        is_now, was = told.kernel_name or "not set", asked.kernel_name or "none"
        found.append(f"kernel name is {is_now}, asked for was {was}")
    return found


def _first_word(pattern: str) -> str:
    """A recorded command line has no quotes around its words: a filter ends there at its blank."""
    words = pattern.replace('"', "").split()
    return words[0][:150] if words else ""


def _unavailable(facts: ReportFacts) -> Iterator[Reason]:
    """Counters that the report lists without a value, which is worse than not to list them."""
    assert facts.details is not None
    states = {
        name: launch.states[name]
        for launch in facts.details.launches
        if not launch.failed
        for name in KEY_COUNTERS
        if name in launch.states
    }
    share = facts.counters_unusable / facts.counters if facts.counters else 0.0
    if not states and share <= UNUSABLE_SHARE:
        return
    said = []
    if states:
        listed = ", ".join(f"{name} ({state})" for name, state in states.items())
        said.append(f"Counters without a usable value: {listed}.")
    if share > UNUSABLE_SHARE:
        said.append(
            f"{share:.0%} of the hardware counters have no usable value "
            f"({facts.counters_unusable:,} of {facts.counters:,}): "
            f"{', '.join(_examples(facts))}."
        )
    yield Reason(code=Code.COUNTERS_UNAVAILABLE, message=" ".join(said))


def _examples(facts: ReportFacts) -> list[str]:
    named = [each.name for each in facts.unavailable if each.state != MetricState.ABSENT]
    more = facts.unavailable_count - COUNTERS_NAMED
    return [*named[:COUNTERS_NAMED], *([f"and {more} more"] if more > 0 else [])]
