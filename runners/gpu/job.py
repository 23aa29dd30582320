"""Run one job from its config to its outcome. Nothing escapes: each failure is in the outcome."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from runners.gpu import compile as compiling
from runners.gpu import ncu, sysinfo, wire
from runners.gpu.capture import capture
from runners.gpu.context import Context
from runners.gpu.contract import (
    MAX_OUTCOME_BYTES,
    CaptureOptions,
    CompileResult,
    Failure,
    FailureKind,
    JobConfig,
    JobOutcome,
    Mode,
    RunRecord,
    Spec,
    System,
)
from runners.gpu.evaluator import Program, run_stage
from runners.gpu.failures import Failed
from runners.gpu.process import Identity
from runners.gpu.workdir import Workspace, check_names

logger = logging.getLogger(__name__)

STAGES = {
    Mode.TEST: (Mode.TEST,),
    Mode.BENCHMARK: (Mode.BENCHMARK,),
    Mode.LEADERBOARD: (Mode.TEST, Mode.BENCHMARK, Mode.LEADERBOARD),
}


def run_job(
    config: JobConfig,
    workspace: Path,
    *,
    report_phase: Callable[[str], None],
    identity: Identity | None = None,
    family_bytes: int | None = None,
) -> tuple[JobOutcome, dict[str, Path]]:
    """Run `config` in the empty folder `workspace`; the outcome, and its archives by part name.

    `report_phase` gets a short readable text at each step. `identity` is the user that the
    submission runs as, which needs root; the folders above `workspace` must let it pass.
    `family_bytes` is the resident memory that a program and its children may hold together.
    """
    job = _Job(config, report_phase)
    failure = None
    try:
        job.run(workspace, identity, family_bytes)
    except Failed as error:
        failure = error.failure
    except Exception as error:
        logger.exception("The job %s crashed.", config.job_id)
        failure = Failure(
            kind=FailureKind.GPU_SIDE_CRASHED,
            message=f"The GPU side failed ({type(error).__name__}). {ncu.OURS}",
        )
    outcome = JobOutcome(
        job_id=config.job_id,
        attempt=config.attempt,
        system=job.system,
        runs=job.runs,
        failure=failure or job.failure,
    )
    return _within_limits(outcome), job.archives


class _Job:
    """Collects what is done, so that it comes back even if a later step fails."""

    def __init__(self, config: JobConfig, report_phase: Callable[[str], None]) -> None:
        self.config = config
        self.report_phase = report_phase
        self.system = System()
        self.runs: dict[str, RunRecord] = {}
        self.archives: dict[str, Path] = {}
        self.failure: Failure | None = None

    def run(self, workspace: Path, identity: Identity | None, family_bytes: int | None) -> None:
        config = self.config
        check_config(config)
        context = Context(
            config=config,
            workspace=Workspace(workspace, identity),
            identity=identity,
            deadline=time.monotonic() + config.limits.job_s,
            family_bytes=family_bytes,
        )
        self.report_phase("looking at the machine")
        self.system = sysinfo.describe(context)
        profiler = self._find_profiler(context)
        started = _now()
        program, compilation, failure = self._compile(context)
        if failure:
            keys = (
                [f"profile.{n}" for n in config.selected] if profiler else [STAGES[config.mode][0]]
            )
            for key in keys:
                self.runs[key] = RunRecord(
                    start=started, end=_now(), compilation=compilation, failure=failure
                )
        elif profiler:
            self._capture_all(program, profiler, compilation)
        else:
            self._run_stages(program, compilation)

    def _find_profiler(self, context: Context) -> ncu.Profiler | None:
        if self.config.mode is not Mode.PROFILE:
            return None
        options = self.config.capture or CaptureOptions()
        ncu.check_options(options)
        return ncu.find_profiler(context, options.ncu_version)

    def _compile(self, context: Context) -> tuple[Program, CompileResult | None, Failure | None]:
        self.report_phase("compiling")
        if self.config.lang == "cu":
            compilation, failure, binary = compiling.compile_cuda(context)
            return Program(context=context, binary=binary), compilation, failure
        warmed_up, failure = compiling.warm_up(context)
        return Program(context=context), warmed_up, failure

    def _run_stages(self, program: Program, compilation: CompileResult | None) -> None:
        """Each stage in turn, up to the first that is not passed."""
        for mode in STAGES[self.config.mode]:
            specs, limit_s = self._stage(mode)
            self.report_phase(f"running {mode}")
            start = _now()
            try:
                run, failure = run_stage(program, mode, specs, limit_s)
            except Failed as error:
                run, failure = None, error.failure
            self.runs[mode] = RunRecord(
                start=start, end=_now(), compilation=compilation, run=run, failure=failure
            )
            if failure or not (run and run.success and run.passed):
                return

    def _stage(self, mode: Mode) -> tuple[list[Spec], float]:
        config, limits = self.config, self.config.limits
        if mode is Mode.TEST:
            return list(config.tests), limits.test_s
        limit_s = limits.benchmark_s if mode is Mode.BENCHMARK else limits.ranked_s
        return [config.benchmarks[n] for n in config.selected], limit_s

    def _capture_all(
        self, program: Program, profiler: ncu.Profiler, compilation: CompileResult | None
    ) -> None:
        """Each selected benchmark; one that fails does not take the others with it."""
        selected = self.config.selected
        for position, index in enumerate(selected, start=1):
            self.report_phase(f"capturing benchmark {position} of {len(selected)} (index {index})")
            record = self._capture_one(program, profiler, index)
            self.runs[f"profile.{index}"] = replace(record, compilation=compilation)
            if record.failure and record.failure.kind is FailureKind.COUNTERS_NOT_PERMITTED:
                self.failure = record.failure  # the machine's fault: the others are not tried

    def _capture_one(self, program: Program, profiler: ncu.Profiler, index: int) -> RunRecord:
        start = _now()
        if self.failure:
            return RunRecord(start=start, end=start, failure=self.failure)
        try:
            captured = capture(program, profiler, index)
        except Failed as error:
            return RunRecord(start=start, end=_now(), failure=error.failure)
        if captured.record and captured.path:
            self.archives[captured.record.archive] = captured.path
        return RunRecord(
            start=start,
            end=_now(),
            run=captured.run,
            capture=captured.record,
            failure=captured.failure,
            notes=captured.notes,
        )


def check_config(config: JobConfig) -> None:
    """Raises Failed (bad config) for what can't be run; the server's checks come before this."""
    problem = None
    files = config.sources | (config.headers or {})
    if config.lang not in ("py", "cu"):
        problem = f"The language {config.lang[:80]!r} is unknown."
    elif not config.sources or len(files) != len(config.sources) + len(config.headers or {}):
        problem = "There are no sources, or a file is there twice."
    elif config.lang == "py" and config.main not in config.sources:
        problem = "The evaluator is not among the files."
    elif any(not 0 <= n < len(config.benchmarks) for n in config.selected):
        problem = "A selected benchmark does not exist."
    elif len(set(config.selected)) != len(config.selected):
        problem = "A benchmark is selected twice."
    elif config.mode is Mode.PROFILE and not config.selected:
        problem = "No benchmark is selected."
    if problem:
        raise Failed(FailureKind.BAD_CONFIG, problem)
    check_names(files)


def _within_limits(outcome: JobOutcome) -> JobOutcome:
    """An outcome that the server reads: far too much text is left out, and that is said."""
    if len(wire.dumps(outcome)) <= MAX_OUTCOME_BYTES:
        return outcome
    left_out = "[left out: the results of this job are too large]"
    runs = {
        key: replace(
            record,
            run=record.run
            and replace(
                record.run, stdout="", stderr=left_out, result={}, passed=False, success=False
            ),
            compilation=record.compilation
            and replace(record.compilation, stdout="", stderr=left_out),
        )
        for key, record in outcome.runs.items()
    }
    return replace(outcome, runs=runs)


def _now() -> str:
    return datetime.now(UTC).isoformat()
