"""Jobs of the GPU side with a small evaluator, and stand-ins for ncu and nvcc on PATH."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from runners.gpu.contract import (
    CaptureOptions,
    JobConfig,
    JobOutcome,
    Limits,
    Mode,
    RunRecord,
    read_outcome,
)
from runners.gpu.job import run_job
from runners.gpu.wire import dumps
from tests.synthetic_reports import DEMO_LAUNCHES, Launch, details_csv, details_text, write_report

# An evaluator by section 16 of the wire contract, which tests by calling the submission.
EVALUATOR = """
import os, sys

def main():
    mode, cases = sys.argv[1:]
    out = os.fdopen(int(os.environ["POPCORN_FD"]), "w")
    specs = open(cases).read().splitlines()
    from submission import custom_kernel
    kind = "test" if mode == "test" else "benchmark"
    out.write(f"{kind}-count: {len(specs)}\\n")
    good = True
    for n, spec in enumerate(specs):
        right = custom_kernel(spec) == spec
        good = good and right
        out.write(f"{kind}.{n}.spec: {spec}\\n")
        out.write(f"{kind}.{n}.status: {'pass' if right else 'fail'}\\n")
    out.write(f"check: {'pass' if good else 'fail'}\\n")
    out.flush()
    return 0 if good else 112

if __name__ == "__main__":
    sys.exit(main())
"""
IDENTITY = "def custom_kernel(data):\n    return data\n"

TESTS = ({"rows": 64, "seed": 101}, {"rows": 65, "seed": 102})
BENCHMARKS = ({"size": 1024, "seed": 7}, {"size": 2048, "seed": 8}, {"size": 4096, "seed": 9})


@dataclass
class Job:
    """What a job came to, after the way over the wire."""

    outcome: JobOutcome
    archives: dict[str, Path]
    phases: list[str]

    @property
    def runs(self) -> dict[str, RunRecord]:
        return self.outcome.runs

    @property
    def kinds(self) -> dict[str, str | None]:
        return {key: r.failure.kind if r.failure else None for key, r in self.runs.items()}


@dataclass
class Machine:
    """A folder first on PATH that holds the stand-ins."""

    tools: Path
    plan: dict[str, Any] = field(default_factory=dict)

    def plan_capture(self, *launches: Launch, **orders: Any) -> None:
        """Let ncu write a report with these launches, and do as ordered besides."""
        write_report(self.tools / "made.ncu-rep", launches)
        (self.tools / "plan.json").write_text(
            json.dumps(
                {
                    "report": "made.ncu-rep",
                    "log": "==PROF== Connected to process 1 (/usr/bin/python3)\n",
                    "text": details_text(DEMO_LAUNCHES),
                    "csv": details_csv(DEMO_LAUNCHES),
                }
                | orders
            )
        )

    def calls(self) -> list[dict[str, Any]]:
        lines = (self.tools / "calls.jsonl").read_text().splitlines()
        return [json.loads(line) for line in lines]

    def captures(self) -> list[dict[str, Any]]:
        return [call for call in self.calls() if "--export" in call["argv"]]

    def nvcc_calls(self) -> list[list[str]]:
        lines = (self.tools / "nvcc.jsonl").read_text().splitlines()
        return [json.loads(line) for line in lines]


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """A machine with stand-ins for ncu and nvcc, and no GPU."""
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in ("ncu", "nvcc"):
        source = Path(__file__).with_name(f"fake_{name}.py").read_text()
        (tools / name).write_text(f"#!{sys.executable}\n{source}")
        (tools / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}:{os.environ['PATH']}")
    monkeypatch.setenv("KERNELBOT_PYTHON", sys.executable)
    made = Machine(tools)
    made.plan_capture(Launch(name="my_kernel"))
    return made


def make_config(
    submission: str = IDENTITY, mode: Mode = Mode.TEST, evaluator: str = EVALUATOR, **changes: Any
) -> JobConfig:
    config = JobConfig(
        job_id="job-1",
        attempt=1,
        mode=mode,
        lang="py",
        main="eval.py",
        sources={"eval.py": evaluator, "submission.py": submission},
        tests=TESTS,
        benchmarks=BENCHMARKS,
        selected=(0,) if mode is Mode.PROFILE else (0, 1, 2),
        limits=Limits(compile_s=60, test_s=60, benchmark_s=60, ranked_s=60, capture_s=60),
        capture=CaptureOptions() if mode is Mode.PROFILE else None,
    )
    return replace(config, **changes)


@pytest.fixture
def run(machine: Machine, tmp_path: Path) -> Callable[..., Job]:
    """Run a job in this process; the arguments are those of `make_config`."""
    count = 0

    def run_config(*args: Any, family_bytes: int | None = None, **changes: Any) -> Job:
        nonlocal count
        count += 1
        workspace = tmp_path / f"workspace-{count}"
        workspace.mkdir()
        phases: list[str] = []
        outcome, archives = run_job(
            make_config(*args, **changes),
            workspace,
            report_phase=phases.append,
            family_bytes=family_bytes,
        )
        return Job(read_outcome(dumps(outcome)), archives, phases)

    return run_config


@pytest.fixture
def profile(run: Callable[..., Job]) -> Callable[..., Job]:
    """As `run`, in profile mode with one benchmark."""

    def run_profile(submission: str = IDENTITY, **changes: Any) -> Job:
        return run(submission, Mode.PROFILE, **changes)

    return run_profile
