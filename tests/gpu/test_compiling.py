"""The one compile step of a job: nvcc for CUDA, a first import for Python."""

from __future__ import annotations

import pytest

from runners.gpu.contract import FailureKind, Fault, Limits, Mode
from tests.gpu.conftest import EVALUATOR, IDENTITY

# The stand-in for nvcc makes a "program" of a script; this one holds the submission as well.
CUDA_LIKE = EVALUATOR.replace(
    "from submission import custom_kernel", "custom_kernel = lambda data: data"
)
CUDA = {"lang": "cu", "main": None, "sources": {"eval.cu": CUDA_LIKE}}
BROKEN = CUDA | {"sources": {"eval.cu": "syntax-error"}}


def test_a_cuda_submission_is_compiled_once_for_all_stages(run, machine):
    job = run(mode=Mode.LEADERBOARD, arch="90a", **CUDA)

    assert [record.run.passed for record in job.runs.values()] == [True, True, True]
    assert len(machine.nvcc_calls()) == 1
    compilation = job.runs["leaderboard"].compilation
    assert compilation.success
    assert compilation.nvcc_found
    assert "V13.0.88" in compilation.nvcc_version
    assert "ptxas info" in compilation.stderr


def test_a_cuda_submission_is_compiled_once_for_all_captures(run, machine):
    job = run(mode=Mode.PROFILE, arch="100", selected=(0, 1, 2), **CUDA)

    assert list(job.kinds.values()) == [None, None, None]
    assert len(machine.nvcc_calls()) == 1
    assert machine.captures()[0]["argv"][-3:-1] == ["./eval.out", "profile"]


def test_flags_of_the_task_take_effect_and_do_not_accumulate(run, machine):
    options = {
        "headers": {"inc/shared.h": "// a header"},
        "include_dirs": ("inc",),
        "defines": {"TILE": "16", "FAST": ""},
        "compile_flags": ("--maxrregcount=64",),
    }
    for _ in range(2):
        run(arch="90a", **CUDA, **options)

    first, second = machine.nvcc_calls()
    assert first == second
    for flag in ("-Iinc", "-DTILE=16", "-DFAST", "--maxrregcount=64", "--std=c++20", "-O3"):
        assert first.count(flag) == 1
    assert "-gencode=arch=compute_90a,code=sm_90a" in first
    assert "eval.cu" in first
    assert "inc/shared.h" not in first


@pytest.mark.parametrize(
    ("mode", "keys"),
    [
        (Mode.TEST, ["test"]),
        (Mode.LEADERBOARD, ["test"]),
        (Mode.PROFILE, ["profile.0", "profile.2"]),
    ],
)
def test_a_compile_error_is_in_every_run_of_the_job(run, machine, mode, keys):
    job = run(mode=mode, selected=(0, 2), **BROKEN)

    assert list(job.runs) == keys
    for record in job.runs.values():
        assert record.failure.kind is FailureKind.COMPILE_FAILED
        assert record.failure.kind.fault is Fault.SUBMISSION
        assert not record.compilation.success
        assert record.compilation.exit_code == 2
        assert 'expected a ";"' in record.compilation.stderr
        assert record.run is None
    assert job.outcome.failure is None


def test_a_compiler_that_never_ends_is_stopped(run):
    sources = {"eval.cu": "compile-for-ever"}
    job = run(**(CUDA | {"sources": sources}), limits=Limits(compile_s=2))

    assert job.kinds == {"test": FailureKind.COMPILE_TIME_LIMIT}
    assert not job.runs["test"].compilation.success


def test_a_missing_compiler_is_our_fault(run, machine, monkeypatch):
    monkeypatch.setenv("PATH", str(machine.tools))
    (machine.tools / "nvcc").unlink()
    job = run(**CUDA)

    assert job.outcome.failure.kind is FailureKind.COMPILER_MISSING
    assert job.outcome.failure.kind.fault is Fault.SERVICE


def test_a_compiled_program_finds_no_sources(run):
    """Section 16: CUDA sources are removed before the run."""
    source = CUDA_LIKE + "\n"
    source = source.replace(
        "import os, sys\n", "import os, sys\nprint(sorted(os.listdir('.')))\n", 1
    )
    stdout = run(**(CUDA | {"sources": {"eval.cu": source}})).runs["test"].run.stdout
    assert stdout == "['eval.out']\n"


def test_a_warm_up_that_fails_is_nobodys_business(run):
    submission = IDENTITY + "if __name__ == '__main__':\n    raise RuntimeError('no GPU here')\n"
    record = run(submission).runs["test"]

    assert record.run.passed
    assert record.compilation is None


def test_a_warm_up_that_builds_an_extension_is_told_as_compilation(run):
    submission = IDENTITY + "print('[1/2] c++ -DTORCH_EXTENSION_NAME=fast')\n"
    record = run(submission).runs["test"]

    assert record.run.passed
    assert record.compilation.success
    assert "TORCH_EXTENSION_NAME" in record.compilation.stdout


def test_an_extension_that_does_not_build_is_a_compile_error(run):
    submission = (
        "print('[1/2] c++ -DTORCH_EXTENSION_NAME=fast')\n"
        "raise RuntimeError(\"Error building extension 'fast'\")\n"
    )
    job = run(submission, Mode.PROFILE, selected=(0, 1))

    assert set(job.kinds.values()) == {FailureKind.COMPILE_FAILED}
    assert "Error building extension" in job.runs["profile.1"].compilation.stderr


def test_the_warm_up_has_seed_1_and_a_limit_of_its_own(run, machine):
    """FR-05: compiling has a budget apart from the run's."""
    submission = IDENTITY + (
        "import os, time\n"
        "if __name__ == '__main__':\n"
        "    open(os.environ['HOME'] + '/seed', 'w').write(os.environ['POPCORN_SEED'])\n"
        "    time.sleep(600)\n"
        "print(open(os.environ['HOME'] + '/seed').read())\n"
    )
    record = run(submission, limits=Limits(compile_s=2)).runs["test"]

    assert record.run.passed
    assert record.run.stdout == "1\n"
