"""The evaluators of examples/, run as the GPU side runs them: as a child with a result pipe."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leaderboards.task_definition import SUBMISSION_MARK
from leaderboards.task_files import TaskFile, read_competition, read_task
from runners.gpu.contract import case_line

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
PROBLEMS = EXAMPLES / "problems"
CASES = "rows: 8; cols: 5; seed: 7\nrows: 3; cols: 9; seed: 8\n"
RIGHT = (PROBLEMS / "rowsum_cpu/submission.py").read_text()
LIMIT_S = 120


@pytest.fixture(scope="module")
def rowsum_task() -> TaskFile:
    return read_task(PROBLEMS / "rowsum_cpu/task.yml", root=EXAMPLES)


@dataclass(frozen=True)
class Ran:
    exit_code: int
    results: dict[str, str]
    stdout: str
    stderr: str
    pipe: int  # the inode of the result pipe


@pytest.fixture
def evaluate(tmp_path, rowsum_task):
    def call(mode: str, submission: str = RIGHT, cases: str = CASES, **environment: str) -> Ran:
        for name, text in rowsum_task.definition.files.items():
            (tmp_path / name).write_text(submission if text == SUBMISSION_MARK else text)
        (tmp_path / "cases.txt").write_text(cases)
        read, write = os.pipe()
        pipe = os.fstat(write).st_ino
        with os.fdopen(read) as results:
            try:
                done = subprocess.run(
                    [sys.executable, "-W", "error", "eval.py", mode, "cases.txt"],
                    cwd=tmp_path,
                    env={"POPCORN_FD": str(write)} | environment,
                    pass_fds=[write],
                    capture_output=True,
                    text=True,
                    timeout=LIMIT_S,
                    check=False,
                )
            finally:
                os.close(write)
            lines = [line.split(":", 1) for line in results.read().splitlines()]
        found = {key.strip(): value.strip() for key, value in lines}
        return Ran(done.returncode, found, done.stdout, done.stderr, pipe)

    return call


def kernel(body: str, above: str = "") -> str:
    return f"{above}\ndef custom_kernel(rows):\n    {body}\n"


def test_the_right_submission_passes_every_test(evaluate):
    ran = evaluate("test")

    assert ran.exit_code == 0, ran.stderr
    assert ran.results == {
        "test-count": "2",
        "test.0.spec": "rows: 8; cols: 5; seed: 7",
        "test.0.status": "pass",
        "test.1.spec": "rows: 3; cols: 9; seed: 8",
        "test.1.status": "pass",
        "check": "pass",
    }
    assert ran.stderr == ""


@pytest.mark.parametrize("mode", ["benchmark", "leaderboard"])
def test_the_right_submission_is_timed_in_nanoseconds(evaluate, mode):
    slow = kernel("time.sleep(0.002)\n    return [sum(row) for row in rows]", "import time")
    ran = evaluate(mode, slow, "rows: 8; cols: 5; seed: 7\n")

    assert ran.exit_code == 0, ran.stderr
    assert ran.results["benchmark-count"] == "1"
    assert ran.results["check"] == "pass"
    times = {k: float(ran.results[f"benchmark.0.{k}"]) for k in ("best", "mean", "worst", "err")}
    assert 2e6 <= times["best"] <= times["mean"] <= times["worst"]
    assert int(ran.results["benchmark.0.runs"]) >= 3


def test_a_profile_calls_the_submission_in_the_range_and_gives_no_times(evaluate):
    ran = evaluate("profile", cases="rows: 8; cols: 5; seed: 7\n", POPCORN_NCU="1")

    assert ran.exit_code == 0, ran.stderr
    assert ran.results == {
        "benchmark-count": "1",
        "benchmark.0.spec": "rows: 8; cols: 5; seed: 7",
        "benchmark.0.status": "pass",
        "check": "pass",
    }


# Stands in for NVTX: prints what happens between push and pop.
FAKE_NVTX = """
import contextlib

@contextlib.contextmanager
def annotate(name):
    print("push", name, flush=True)
    yield
    print("pop", name, flush=True)
"""


def test_fr_41_the_range_holds_one_call_on_a_fresh_input_and_nothing_else(evaluate, tmp_path):
    (tmp_path / "nvtx.py").write_text(FAKE_NVTX)
    overwriting = kernel(
        "print('call', rows[0][0], flush=True)\n"
        "    sums = [sum(row) for row in rows]\n"
        "    rows[0][0] = -1.0\n"
        "    return sums"
    )

    ran = evaluate("profile", overwriting, "rows: 8; cols: 5; seed: 7\n")

    assert ran.exit_code == 0, ran.stderr
    warm_up, push, call, pop = ran.stdout.splitlines()
    assert (push, pop) == ("push custom_kernel", "pop custom_kernel")
    assert call == warm_up != "call -1.0"


@pytest.mark.parametrize("mode", ["test", "benchmark", "leaderboard", "profile"])
def test_a_wrong_submission_fails_the_check_with_the_place(evaluate, mode):
    ran = evaluate(mode, kernel("return [0.0 for _ in rows]"))

    place = "test.0" if mode == "test" else "benchmark.0"
    assert ran.exit_code == 112
    assert ran.results["check"] == "fail"
    assert ran.results[f"{place}.status"] == "fail"
    assert ran.results[f"{place}.error"].startswith("mismatch at row 0\\nexpected")


@pytest.mark.parametrize(
    ("submission", "words"),
    [
        (kernel("return sum(rows[0])"), "a list of float was expected, got float"),
        (kernel("return [1.0]"), "8 sums were expected, got 1"),
        (kernel("return rows[99]"), "IndexError: list index out of range"),
        ("def custom_kernel(rows:\n", "SyntaxError"),
        ("x = 1\n", "ImportError: cannot import name 'custom_kernel'"),
    ],
)
def test_a_submission_that_cannot_be_judged_says_why(evaluate, submission, words):
    ran = evaluate("test", submission)

    assert ran.exit_code == 112
    assert ran.results["check"] == "fail"
    assert words in ran.results["test.0.error"]


def test_a_submission_that_is_right_only_once_is_found_out_in_leaderboard_mode(evaluate):
    cheating = kernel(
        "known.append(known[0] if known else [sum(row) for row in rows])\n    return known[-1]",
        "known = []",
    )

    assert evaluate("benchmark", cheating).exit_code == 0
    assert evaluate("leaderboard", cheating).exit_code == 112


@pytest.mark.parametrize(
    ("body", "exit_code", "words"),
    [
        ("os.kill(os.getpid(), 11)", 128 + 11, "by signal 11"),
        ("os._exit(113)", 1, "with exit code 113"),
        ("os._exit(0)", 1, "with exit code 0"),
        ("raise SystemExit(0)", 1, "with exit code 0"),
    ],
)
def test_a_submission_that_dies_is_a_crash_and_never_a_fault_of_the_task(
    evaluate, body, exit_code, words
):
    ran = evaluate("test", kernel(body, "import os"))

    assert ran.exit_code == exit_code
    assert ran.results["check"] == "fail"
    assert words in ran.results["test.0.error"]
    assert "test.1.spec" not in ran.results


LOOKING = """
import os

def inodes():
    for descriptor in os.listdir("/proc/self/fd"):
        try:
            yield os.fstat(int(descriptor)).st_ino
        except OSError:  # the one that listed the folder
            pass

def custom_kernel(rows):
    print([name for name in os.environ if name.startswith("POPCORN")], *inodes(), flush=True)
    return [sum(row) for row in rows]
"""


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_the_submission_has_neither_the_descriptor_nor_the_seed(evaluate):
    ran = evaluate("test", LOOKING, POPCORN_SEED="3")

    assert ran.exit_code == 0, ran.stderr
    for line in ran.stdout.splitlines():
        variables, *inodes = line.split()
        assert variables == "[]"
        assert len(inodes) >= 3
        assert str(ran.pipe) not in inodes


def test_the_seed_of_the_run_changes_every_input_and_no_spec(evaluate):
    showing = kernel("print(rows[0][0])\n    return [sum(row) for row in rows]")

    plain, seeded, again = (
        evaluate("test", showing, **seed)
        for seed in ({}, {"POPCORN_SEED": "12345"}, {"POPCORN_SEED": "12345"})
    )

    assert not set(plain.stdout.splitlines()) & set(seeded.stdout.splitlines())
    assert seeded.stdout == again.stdout
    assert plain.results == seeded.results


@pytest.mark.parametrize(
    "cases",
    ["rows: 8; cols: 1.5\n", "rows 8\n", "rows: 8; rows: 9\n", "rows: 8; cols: \n", "rows:: 8\n"],
)
def test_a_case_that_cannot_be_read_is_a_fault_of_the_task(evaluate, cases):
    assert evaluate("test", cases=cases).exit_code == 113


@pytest.mark.parametrize("descriptor", ["", "x", "999"])
def test_without_a_descriptor_there_are_no_results(evaluate, descriptor):
    assert evaluate("test", POPCORN_FD=descriptor).exit_code == 111


def test_an_unknown_mode_is_refused_as_usage(evaluate):
    ran = evaluate("tune")

    assert ran.exit_code == 2
    assert "usage" in ran.stderr


def load_cases_module():
    spec = importlib.util.spec_from_file_location("cases", PROBLEMS / "common/cases.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# What task files may hold: see test_task_files.py.
keys = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]*", fullmatch=True)
values = st.integers() | st.from_regex(r"[A-Za-z_][A-Za-z0-9_.-]*", fullmatch=True)


@given(st.dictionaries(keys, values, min_size=1))
def test_fr_40_every_value_that_a_task_may_hold_reaches_the_evaluator_with_its_type(spec):
    again = load_cases_module().read_case(case_line(spec))

    assert list(again.items()) == list(spec.items())
    assert [type(value) for value in again.values()] == [type(value) for value in spec.values()]


def test_the_examples_are_two_problems_with_several_benchmarks_each():
    competition = read_competition(PROBLEMS / "examples.yaml", root=EXAMPLES)

    assert competition.errors == ()
    assert {problem.name for problem in competition.problems} == {"vectoradd", "rowsum_cpu"}
    for problem in competition.problems:
        task = read_task(PROBLEMS / problem.directory / "task.yml", root=EXAMPLES)
        assert len(task.definition.benchmarks) >= 3
        assert task.gpus == problem.gpus
