"""Test, benchmark and leaderboard mode with real child processes; wire-contract.md, 5.6 and 16."""

from __future__ import annotations

import pytest

from runners.gpu.contract import FailureKind, Fault, Limits, Mode
from tests.gpu.conftest import BENCHMARKS, EVALUATOR, IDENTITY

WRONG = "def custom_kernel(data):\n    return None\n"


def test_a_right_submission_passes_its_tests(run):
    job = run()

    assert list(job.runs) == ["test"]
    result = job.runs["test"].run
    assert result.success
    assert result.passed
    assert result.exit_code == 0
    assert result.result["test-count"] == "2"
    assert result.result["test.1.spec"] == "rows: 65; seed: 102"
    assert result.duration > 0
    assert job.outcome.failure is None
    assert job.phases == ["looking at the machine", "compiling", "running test"]


def test_a_wrong_submission_is_a_result_and_no_failure(run):
    record = run(WRONG).runs["test"]

    assert record.failure is None
    assert record.run.success
    assert not record.run.passed
    assert record.run.exit_code == 112
    assert record.run.result["test.0.status"] == "fail"


def test_benchmark_mode_runs_the_selected_benchmarks_without_tests(run):
    job = run(mode=Mode.BENCHMARK, selected=(2,))

    assert list(job.runs) == ["benchmark"]
    result = job.runs["benchmark"].run.result
    assert result["benchmark-count"] == "1"
    assert result["benchmark.0.spec"] == "size: 4096; seed: 9"


def test_leaderboard_mode_has_three_stages(run):
    job = run(mode=Mode.LEADERBOARD)

    assert list(job.runs) == ["test", "benchmark", "leaderboard"]
    assert all(record.run.passed for record in job.runs.values())


def test_leaderboard_mode_stops_at_the_first_stage_that_is_not_passed(run):
    assert list(run(WRONG, Mode.LEADERBOARD).runs) == ["test"]


def test_the_evaluator_gets_the_seed_and_no_other_environment(run, monkeypatch):
    """FR-22, FR-37: what the harness's environment holds is not passed on."""
    monkeypatch.setenv("PROBE_SECRET", "MARK-ENV-7731")
    monkeypatch.setenv("CUDA_HOME", "/opt/cuda")
    submission = IDENTITY + "import os\nprint(sorted(os.environ.items()))\n"

    stdout = run(submission, seed=4242).runs["test"].run.stdout

    assert "('POPCORN_SEED', '4242')" in stdout
    assert "('CUDA_HOME', '/opt/cuda')" in stdout
    assert "MARK-ENV-7731" not in stdout
    assert "POPCORN_NCU" not in stdout


def test_without_a_seed_there_is_no_seed_variable(run):
    submission = IDENTITY + "import os\nprint(sorted(os.environ))\n"
    assert "POPCORN_SEED" not in run(submission).runs["test"].run.stdout


@pytest.mark.parametrize(
    ("code", "kind", "fault"),
    [
        (110, FailureKind.EVALUATOR_FAILED, Fault.SUBMISSION),
        (111, FailureKind.NO_RESULT_PIPE, Fault.SERVICE),
        (113, FailureKind.BAD_CASES, Fault.TASK),
        (2, FailureKind.EVALUATOR_FAILED, Fault.SUBMISSION),
        (1, FailureKind.EVALUATOR_CRASHED, Fault.SUBMISSION),
    ],
)
def test_each_exit_code_of_an_evaluator_has_its_meaning(run, code, kind, fault):
    record = run(evaluator=f"import sys; sys.exit({code})").runs["test"]

    assert record.failure.kind is kind
    assert record.failure.kind.fault is fault
    assert record.run.exit_code == code
    assert not record.run.success
    assert record.failure.message in record.run.stderr


def test_a_signal_is_named(run):
    record = run(evaluator="import os; os.kill(os.getpid(), 11)").runs["test"]

    assert record.failure.kind is FailureKind.EVALUATOR_CRASHED
    assert "SIGSEGV" in record.failure.message
    assert record.run.exit_code == -11


def test_a_run_that_was_killed_for_its_memory_is_told_so(run):
    """By the kernel, or by the watch at Modal; nobody else kills but a time limit, which says so."""
    record = run(evaluator="import os; os.kill(os.getpid(), 9)").runs["test"]

    assert record.failure.kind is FailureKind.OUT_OF_MEMORY
    assert "more memory than it is given" in record.run.stderr


def test_exit_code_0_without_a_verdict_is_not_passed(run):
    record = run("import os\ndef custom_kernel(data):\n    os._exit(0)\n").runs["test"]

    assert record.failure.kind is FailureKind.EVALUATOR_FAILED
    assert "without a verdict" in record.failure.message
    assert not record.run.passed


def test_partial_results_survive_the_time_limit(run):
    evaluator = (
        "import os, time\n"
        "os.write(int(os.environ['POPCORN_FD']), b'test-count: 2\\ncheck: pass\\n')\n"
        "print('begun', flush=True)\n"
        "time.sleep(600)\n"
    )
    record = run(evaluator=evaluator, limits=Limits(test_s=2)).runs["test"]

    assert record.failure.kind is FailureKind.TIME_LIMIT
    assert "2 s" in record.failure.message
    assert record.run.exit_code == 114
    assert not record.run.success
    assert not record.run.passed
    assert record.run.result == {"test-count": "2"}
    assert record.run.stdout == "begun\n"


def test_200_kb_of_results_do_not_block_the_evaluator(run):
    evaluator = (
        "import os\n"
        "with os.fdopen(int(os.environ['POPCORN_FD']), 'w') as out:\n"
        "    for n in range(2000):\n"
        "        out.write(f'test.{n}.message: ' + 'x' * 100 + '\\n')\n"
        "    out.write('check: pass\\n')\n"
    )
    run_result = run(evaluator=evaluator).runs["test"].run

    assert run_result.passed
    assert len(run_result.result) == 2001


def test_more_results_than_are_read_are_no_verdict(run):
    evaluator = (
        "import os\n"
        "with os.fdopen(int(os.environ['POPCORN_FD']), 'w') as out:\n"
        "    out.write('check: pass\\n' + 'noise: x\\n' * 1_000_000)\n"
    )
    record = run(evaluator=evaluator).runs["test"]

    assert record.failure.kind is FailureKind.EVALUATOR_FAILED
    assert not record.run.passed


def test_result_lines_split_at_the_first_colon_and_later_ones_overwrite(run):
    evaluator = (
        "import os\n"
        "os.write(int(os.environ['POPCORN_FD']),\n"
        "    b' a : b: c \\nno colon\\na: second: 2\\nbin: \\xff\\x00\\ncheck: pass')\n"
    )
    result = run(evaluator=evaluator).runs["test"].run.result

    assert result == {"a": "second: 2", "bin": "\ufffd", "check": "pass"}


def test_the_warm_up_cannot_change_the_evaluator(run):
    """Section 20: the submission is imported before the evaluator runs, beside its files."""
    submission = IDENTITY + (
        "if __name__ == '__main__':\n"
        "    for name in ('eval.py', 'submission.py', 'reference.py'):\n"
        "        open(name, 'w').write('raise SystemExit(77)')\n"
    )
    assert run(submission).runs["test"].run.passed


def test_what_the_warm_up_put_into_its_caches_is_still_there(run):
    """FR-05: building is done once, outside what is measured."""
    submission = IDENTITY + (
        "from pathlib import Path\n"
        "cache = Path.home() / '.cache' / 'built'\n"
        "print('found' if cache.exists() else 'built')\n"
        "cache.parent.mkdir(exist_ok=True)\n"
        "cache.touch()\n"
    )
    assert run(submission).runs["test"].run.stdout == "found\n"


def test_a_missing_interpreter_is_our_fault(run, monkeypatch):
    monkeypatch.setenv("KERNELBOT_PYTHON", "/nonexistent/python3")
    job = run()

    assert job.outcome.failure.kind is FailureKind.GPU_SIDE_CRASHED
    assert job.outcome.failure.kind.fault is Fault.SERVICE
    assert "Python for evaluators" in job.outcome.failure.message


def test_the_stage_limits_of_each_mode_apply(run):
    slow = EVALUATOR.replace("    mode, cases", "    import time; time.sleep(3)\n    mode, cases")
    limits = Limits(test_s=60, benchmark_s=1, ranked_s=60)
    job = run(evaluator=slow, mode=Mode.LEADERBOARD, limits=limits)

    assert job.kinds == {"test": None, "benchmark": FailureKind.TIME_LIMIT}


def test_the_job_limit_ends_a_stage_and_is_named(run):
    job = run(
        evaluator="import time; time.sleep(600)", limits=Limits(job_s=3, compile_s=1, test_s=60)
    )
    assert job.kinds == {"test": FailureKind.JOB_TIME_LIMIT}


def test_all_benchmarks_of_the_task_can_be_run(run):
    result = run(mode=Mode.BENCHMARK).runs["benchmark"].run.result
    assert result["benchmark-count"] == str(len(BENCHMARKS))
