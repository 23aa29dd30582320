"""Run an evaluator by its contract (wire-contract.md, section 16) and read what it reports."""

from __future__ import annotations

import shutil
import signal
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from runners.gpu import process
from runners.gpu.compile import BINARY, TIME_LIMIT_EXIT_CODE
from runners.gpu.context import Allowance, Context, python_program
from runners.gpu.contract import Failure, FailureKind, RunResult, Spec, case_line
from runners.gpu.failures import Failed
from runners.gpu.output import safe_text

SUCCESS_EXIT_CODES = (0, 112)
USAGE_EXIT_CODE = 2

EXIT_CODES = {
    USAGE_EXIT_CODE: (
        FailureKind.EVALUATOR_FAILED,
        "The evaluator refused how it was called (exit code 2).",
    ),
    110: (FailureKind.EVALUATOR_FAILED, "A CUDA call failed (exit code 110)."),
    111: (
        FailureKind.NO_RESULT_PIPE,
        "The evaluator could not use its result descriptor (exit code 111). "
        "This is a fault of the service.",
    ),
    113: (
        FailureKind.BAD_CASES,
        "The evaluator could not read its test or benchmark cases (exit code 113). "
        "This is a fault of the task.",
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """The evaluator of a job: Python files, or a compiled program."""

    context: Context
    binary: Path | None = None

    def prepare(self, name: str, specs: Iterable[Spec]) -> Prepared:
        """A fresh folder with all files of the evaluator and the cases beside it."""
        config, workspace = self.context.config, self.context.workspace
        stage = workspace.new_folder(name)
        workspace.lay_out(stage, {"cases.txt": "".join(case_line(s) + "\n" for s in specs)})
        folder = workspace.new_folder(f"{name}/work")
        if self.binary:
            shutil.copyfile(self.binary, folder / BINARY, follow_symlinks=False)
            workspace.adopt(folder / BINARY, mode=0o700)
            argv = [f"./{BINARY}"]
        elif config.main in config.sources:
            workspace.lay_out(folder, config.sources)
            argv = [python_program(), config.main]
        else:
            raise Failed(FailureKind.BAD_CONFIG, "The evaluator is not among the files.")
        return Prepared(folder=folder, argv=argv, cases=stage / "cases.txt")


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    folder: Path
    argv: list[str]
    cases: Path

    def command(self, mode: str) -> list[str]:
        return [*self.argv, mode, str(self.cases)]


def run_stage(
    program: Program, mode: str, specs: Iterable[Spec], limit_s: float
) -> tuple[RunResult, Failure | None]:
    """One run of the evaluator in `mode`. Raises Failed when the job's time is used up."""
    context = program.context
    allowance = context.allow(limit_s, FailureKind.TIME_LIMIT)
    prepared = program.prepare(mode, specs)
    finished = process.run(
        prepared.command(mode),
        cwd=prepared.folder,
        env=evaluator_environment(context),
        bounds=context.bounds(allowance.seconds),
        identity=context.identity,
        results_variable="POPCORN_FD",
    )
    failure = failure_of(finished, allowance)
    return run_result(finished, finished.exit_code, failure), failure


def evaluator_environment(context: Context, **more: str) -> dict[str, str]:
    seed = context.config.seed
    seeded = {} if seed is None else {"POPCORN_SEED": str(seed)}
    return context.environment(**seeded, **more)


def failure_of(finished: process.Finished, allowance: Allowance) -> Failure | None:
    """What went wrong with a run, None for a run that has a verdict, good or bad."""
    failed = finished.exit_code not in SUCCESS_EXIT_CODES
    if finished.out_of_memory and (finished.timed_out or failed):
        return out_of_memory()
    if finished.timed_out:
        return Failure(
            kind=allowance.kind,
            message=f"The run did not end within {allowance.seconds:g} s and was stopped.",
        )
    if failed:
        return failure_of_exit_code(finished.exit_code)
    return _problem_with_results(finished)


def _problem_with_results(finished: process.Finished) -> Failure | None:
    if verdict_of(finished) is not None:
        return None
    if finished.results_cut:
        problem = f"The run reported more than {process.RESULTS_BYTES} bytes of results."
    elif verdicts := _verdicts(finished.results):
        problem = f"The run reported different verdicts: {', '.join(sorted(verdicts))[:80]}."
    else:
        problem = f"The run ended without a verdict (exit code {finished.exit_code})."
    return Failure(kind=FailureKind.EVALUATOR_FAILED, message=problem)


def verdict_of(finished: process.Finished) -> str | None:
    """The value of `check`. None where it can't be trusted: cut, contradicted, or cut short."""
    verdicts = _verdicts(finished.results)
    if finished.timed_out or finished.results_cut or len(verdicts) != 1:
        return None
    return verdicts.pop()


def failure_of_exit_code(exit_code: int) -> Failure:
    if exit_code in EXIT_CODES:
        kind, message = EXIT_CODES[exit_code]
        return Failure(kind=kind, message=message)
    if exit_code == -signal.SIGKILL:
        return out_of_memory()
    how = f"exit code {exit_code}" if exit_code >= 0 else _signal_name(-exit_code)
    return Failure(kind=FailureKind.EVALUATOR_CRASHED, message=f"The run crashed ({how}).")


def out_of_memory() -> Failure:
    return Failure(
        kind=FailureKind.OUT_OF_MEMORY,
        message="The run, or a process of it, was killed (SIGKILL), as happens to one that uses "
        "more memory than it is given (main memory, not the GPU's).",
    )


def run_result(finished: process.Finished, exit_code: int, failure: Failure | None) -> RunResult:
    """The run in the wire's words.

    `exit_code` is the evaluator's own; a failure's text is appended to `stderr`, where people
    look. What arrived before a time limit is kept, but for the verdict.
    """
    result = parse_results(finished.results)
    if verdict_of(finished) is None:
        result.pop("check", None)
    exit_code = TIME_LIMIT_EXIT_CODE if finished.timed_out else exit_code
    return RunResult(
        success=exit_code in SUCCESS_EXIT_CODES,
        passed=result.get("check") == "pass",
        command=finished.command,
        stdout=finished.stdout,
        stderr=with_hints(finished.stderr, [failure.message] if failure else []),
        exit_code=exit_code,
        duration=finished.duration,
        result=result,
    )


def with_hints(stderr: str, hints: Iterable[str]) -> str:
    parts = [stderr.rstrip("\n")] if stderr else []
    return "\n".join([*parts, *hints])


def parse_results(content: bytes) -> dict[str, str]:
    """The lines `key: value`: the first colon splits, and a repeated key overwrites."""
    result = {}
    for line in safe_text(content).split("\n"):
        key, colon, value = line.partition(":")
        if colon:
            result[key.strip()] = value.strip()
    return result


def _verdicts(content: bytes) -> set[str]:
    lines = (line.partition(":") for line in safe_text(content).split("\n"))
    return {value.strip() for key, _, value in lines if key.strip() == "check"}


def _signal_name(number: int) -> str:
    try:
        return f"signal {signal.Signals(number).name}"
    except ValueError:
        return f"signal {number}"
