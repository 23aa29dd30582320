"""What a server and a GPU side say to each other: the task config in, the outcome back.

Both travel as versioned JSON (`wire.py`). `SCHEMA` changes with every change of meaning, and a
side that reads another schema says so instead of guessing.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from enum import StrEnum

from runners.gpu import wire

SCHEMA = 1

# One benchmark or test of a task: key to value, in the order of task.yml.
Spec = dict[str, str | int]


class Mode(StrEnum):
    """What the submission is run for; wire-contract.md, 5.6 and 16."""

    TEST = "test"
    BENCHMARK = "benchmark"
    LEADERBOARD = "leaderboard"
    PROFILE = "profile"


class Fault(StrEnum):
    """Whose failure it was. Ours is never told as the submission's."""

    SUBMISSION = "submission"
    TASK = "task"
    SERVICE = "service"


class FailureKind(StrEnum):
    """Every way in which a run can fail on the GPU side; `FAULTS` says whose fault each is."""

    COMPILE_FAILED = "compile_failed"
    COMPILE_TIME_LIMIT = "compile_time_limit"
    COMPILER_MISSING = "compiler_missing"
    EVALUATOR_FAILED = "evaluator_failed"
    EVALUATOR_CRASHED = "evaluator_crashed"
    OUT_OF_MEMORY = "out_of_memory"
    BAD_CASES = "bad_cases"
    NO_RESULT_PIPE = "no_result_pipe"
    PROFILING_NOT_OFFERED = "profiling_not_offered"
    TIME_LIMIT = "time_limit"
    JOB_TIME_LIMIT = "job_time_limit"
    NO_KERNEL_CAPTURED = "no_kernel_captured"
    FILTER_MATCHED_NOTHING = "filter_matched_nothing"
    REPLAY_OUT_OF_MEMORY = "replay_out_of_memory"
    COUNTERS_NOT_PERMITTED = "counters_not_permitted"
    PROFILER_MISSING = "profiler_missing"
    PROFILER_VERSION = "profiler_version"
    PROFILER_FAILED = "profiler_failed"
    REPORT_UNREADABLE = "report_unreadable"
    REPORT_TOO_LARGE = "report_too_large"
    EXPORT_FAILED = "export_failed"
    BAD_CONFIG = "bad_config"
    GPU_SIDE_CRASHED = "gpu_side_crashed"

    @property
    def fault(self) -> Fault:
        return FAULTS.get(self, Fault.SUBMISSION)


FAULTS = {
    FailureKind.COMPILER_MISSING: Fault.SERVICE,
    FailureKind.BAD_CASES: Fault.TASK,
    FailureKind.NO_RESULT_PIPE: Fault.SERVICE,
    FailureKind.PROFILING_NOT_OFFERED: Fault.TASK,
    FailureKind.COUNTERS_NOT_PERMITTED: Fault.SERVICE,
    FailureKind.PROFILER_MISSING: Fault.SERVICE,
    FailureKind.PROFILER_VERSION: Fault.SERVICE,
    FailureKind.PROFILER_FAILED: Fault.SERVICE,
    FailureKind.REPORT_UNREADABLE: Fault.SERVICE,
    FailureKind.EXPORT_FAILED: Fault.SERVICE,
    FailureKind.BAD_CONFIG: Fault.SERVICE,
    FailureKind.GPU_SIDE_CRASHED: Fault.SERVICE,
}


class NoteKind(StrEnum):
    """What a good capture still has to say about itself."""

    LAUNCH_LIMIT_REACHED = "launch_limit_reached"
    TIME_LIMIT_REACHED = "time_limit_reached"
    EXPORT_FAILED = "export_failed"
    WRONG_RESULT = "wrong_result"
    NO_VERDICT = "no_verdict"
    PROFILER_ERRORS = "profiler_errors"
    GRAPH_LAUNCHES = "graph_launches"


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """Why something failed, in words for the person who sent the submission."""

    kind: FailureKind
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    kind: NoteKind
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Seconds, except where named otherwise. See architecture.md, Time limits."""

    compile_s: float = 120
    test_s: float = 180
    benchmark_s: float = 180
    ranked_s: float = 180
    capture_s: float = 600
    export_s: float = 120
    job_s: float = 3000
    memory_bytes: int | None = None
    output_bytes: int = 16_384
    file_bytes: int = 2_000_000_000
    processes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptureOptions:
    """What of a run is captured. `None` is what the user left out, as in capture_options."""

    ncu_kernel_name: str | None = None
    ncu_kernel_name_base: str | None = None
    ncu_launch_count: int | None = None
    # The version that must do the capture, for example "2025.2.1"; None accepts any.
    ncu_version: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class JobConfig:
    """All that the GPU side needs to run one job. Text in `sources` and `headers` is by name."""

    schema: int = SCHEMA
    job_id: str
    attempt: int
    mode: Mode
    lang: str  # "py" or "cu"
    main: str | None  # py: the evaluator's file
    sources: dict[str, str]  # py: every file; cu: what is compiled
    headers: dict[str, str] | None = None  # cu: every other file
    include_dirs: tuple[str, ...] = ()
    defines: dict[str, str] = field(default_factory=dict)
    compile_flags: tuple[str, ...] = ()
    arch: str | None = None  # the SM that nvcc compiles for, for example "90a"
    tests: tuple[Spec, ...] = ()
    benchmarks: tuple[Spec, ...] = ()
    selected: tuple[int, ...] = ()  # zero-based indexes into benchmarks that are run
    seed: int | None = None
    limits: Limits = field(default_factory=Limits)
    capture: CaptureOptions | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class System:
    """The machine that ran the job, as it describes itself; wire-contract.md, 6.4."""

    gpu: str = ""
    device_count: int = 0
    cpu: str = ""
    runtime: str = ""
    platform: str = ""
    torch: str = ""
    hostname: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CompileResult:
    nvcc_found: bool
    nvcc_version: str
    success: bool
    command: str
    stdout: str
    stderr: str
    exit_code: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResult:
    """One run of the evaluator. `result` holds its key/value lines, all text."""

    success: bool  # exit code 0 or 112
    passed: bool  # `check` is `pass`
    command: str
    stdout: str
    stderr: str
    exit_code: int
    duration: float  # seconds
    result: dict[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptureRecord:
    """A report that the profiler wrote. `archive` names the part of the envelope."""

    profiler: str
    ncu_version: str  # as `ncu --version` says it
    launches: int  # counted inside the report
    archive: str
    archive_bytes: int
    archive_sha256: str
    extract: str  # a short readable part of the details


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRecord:
    """A key of `runs`: `test`, `benchmark`, `leaderboard` or `profile.N`; times ISO 8601 in UTC."""

    start: str
    end: str
    compilation: CompileResult | None = None
    run: RunResult | None = None
    capture: CaptureRecord | None = None
    failure: Failure | None = None
    notes: tuple[Note, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class JobOutcome:
    """What the GPU side reports of a job; `failure` is of the job as a whole."""

    schema: int = SCHEMA
    job_id: str
    attempt: int
    system: System
    runs: dict[str, RunRecord]
    failure: Failure | None = None
    # Who really ran it, when that was no GPU: "synthetic" and "recorded" are said wherever it shows.
    origin: str = ""


MAX_CONFIG_BYTES = 64 * 2**20
MAX_OUTCOME_BYTES = 8 * 2**20


def read_config(content: bytes) -> JobConfig:
    """Raises WireError for another schema or a malformed config."""
    config = wire.loads(JobConfig, content, max_bytes=MAX_CONFIG_BYTES)
    _require_schema(config.schema)
    return config


def read_outcome(content: bytes) -> JobOutcome:
    """Raises WireError for another schema or a malformed outcome."""
    outcome = wire.loads(JobOutcome, content, max_bytes=MAX_OUTCOME_BYTES)
    _require_schema(outcome.schema)
    return outcome


def _require_schema(schema: int) -> None:
    if schema != SCHEMA:
        raise wire.WireError(f"schema {schema} was sent, this side speaks {SCHEMA}")


def capture_options(options: CaptureOptions, benchmark_index: int | None) -> dict[str, str | int]:
    """The given options only, in the wire's words (wire-contract.md, 17.4)."""
    given = {
        "benchmark_index": benchmark_index,
        "ncu_kernel_name": options.ncu_kernel_name,
        "ncu_kernel_name_base": options.ncu_kernel_name_base,
        "ncu_launch_count": options.ncu_launch_count,
    }
    return {name: value for name, value in given.items() if value is not None}


def config_sha256(config: JobConfig, profile_options: dict[str, str | int] | None) -> str:
    """The fingerprint of code, evaluator, shapes and options: wire-contract.md, 17.4.

    `profile_options` is what `capture_options` gives, None outside profile mode.
    """
    covered = {
        "lang": config.lang,
        "main": config.main,
        "sources": config.sources,
        "headers": config.headers,
        "arch": config.arch,
        "tests": config.tests,
        "benchmarks": config.benchmarks,
        "profile_options": profile_options,
    }
    return hashlib.sha256(json.dumps(covered, sort_keys=True).encode()).hexdigest()


def case_line(spec: Spec) -> str:
    """One line of the cases file, without its newline: `k: v; k: v` (wire-contract.md, 15.3)."""
    return "; ".join(f"{key}: {value}" for key, value in spec.items())
