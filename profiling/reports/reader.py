"""Read a report: framing first, then its session blocks, then NVIDIA's library in a child process.

A report comes from a container that ran a stranger's code, so all of it may be made to do harm.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from profiling.reports import child
from profiling.reports.details import ReportDetails
from profiling.reports.facts import Problem, ReaderDocument, ReportFacts, key_facts
from profiling.reports.limited import ChildLimits, Ended, run_limited
from profiling.reports.session import VERSION_CHARS, joined, read_session
from profiling.reports.sources import with_sources
from profiling.reports.text import storable
from runners.gpu import wire
from runners.gpu.report_framing import Framing, FramingError, read_framing

LIBRARY = "NVIDIA's library for reports"
READER = Path(child.__file__)
LIMITS = ChildLimits()


def read_report(path: Path, *, limits: ChildLimits = LIMITS, reader: Path = READER) -> ReportFacts:
    """What the report at `path` says, or its problem. Takes 0.2 s to `limits.wall_s`; it blocks.

    Whatever the file holds and however the library fails is in the facts. Raises OSError only:
    where the file can't be read or no process be started.
    """
    try:
        framing = read_framing(path)
        facts = ReportFacts(session=read_session(path), launch_count=_results(framing))
    except FramingError as error:
        return ReportFacts(problem=Problem.CUT, detail=storable(str(error)))
    if not facts.launch_count:
        return _with(facts, Problem.EMPTY, "the report holds no kernel launch")
    facts = _judged(facts, run_limited(reader, str(path.resolve()), limits), limits)
    if facts.details is None:
        return facts
    placed = _placed(facts.details, framing)
    return replace(facts, details=with_sources(placed, path, limits))


def _results(framing: Framing) -> int:
    whole = framing.range_results + framing.cmdlist_results + framing.graph_results
    return framing.launches + whole


def _judged(facts: ReportFacts, ended: Ended, limits: ChildLimits) -> ReportFacts:
    if ended.timed_out:
        return _with(facts, Problem.READER_TIMEOUT, f"{LIBRARY} reached its time limit")
    if ended.overflowed:
        return _with(facts, Problem.READER_CRASHED, f"{LIBRARY} printed without an end")
    if ended.returncode != 0:
        return _with(facts, Problem.READER_CRASHED, f"{LIBRARY} ended with {ended.how}")
    if refused := _refusal(ended.output):
        return _with(facts, Problem.READER_REFUSED, f"{LIBRARY} refused the report: {refused}")
    try:
        document = wire.loads(ReaderDocument, ended.output, max_bytes=limits.output_bytes)
    except wire.WireError as error:
        said = f"what {LIBRARY} found can't be understood: {error}"
        return _with(facts, Problem.READER_CRASHED, storable(said))
    return _complete(facts, document)


def _refusal(output: bytes) -> str:
    try:
        found = json.loads(output)
    except (ValueError, RecursionError):
        return ""
    refused = found.get("refused") if isinstance(found, dict) else None
    return storable(refused) if isinstance(refused, str) else ""


def _complete(facts: ReportFacts, document: ReaderDocument) -> ReportFacts:
    counted = facts.launch_count or 0
    capabilities = (launch.compute_capability for launch in document.launches)
    facts = replace(
        facts,
        session=replace(facts.session, compute_capability=joined(capabilities, VERSION_CHARS)),
        launch_count=document.launch_count,
        failed=document.failed,
        counters=document.counters,
        counters_unusable=document.counters_unusable,
        launches=tuple(key_facts(launch, document.units) for launch in document.launches),
        unavailable_count=document.unavailable_count,
        unavailable=document.unavailable,
        details=ReportDetails(
            launch_count=document.launch_count,
            launches=document.launches,
            sections=document.sections,
            units=document.units,
            metrics_left_out=document.metrics_left_out,
        ),
    )
    if document.launch_count < counted:
        said = f"{LIBRARY} found {document.launch_count} of {counted} launches"
        return _with(facts, Problem.READER_REFUSED, said)
    if document.nameless:
        said = f"{document.nameless} of {document.launch_count} launches have no name"
        return _with(facts, Problem.NAMELESS_LAUNCH, f"the report is damaged: {said}")
    return facts


def _placed(details: ReportDetails, framing: Framing) -> ReportDetails:
    """With context and stream, which the library does not tell but the report does."""
    launches = tuple(
        replace(launch, context=place.context, stream=place.stream)
        for launch, place in zip(details.launches, framing.places, strict=False)
    )
    return (
        replace(details, launches=launches) if len(launches) == len(details.launches) else details
    )


def _with(facts: ReportFacts, problem: Problem, detail: str) -> ReportFacts:
    return replace(facts, problem=problem, detail=detail)
