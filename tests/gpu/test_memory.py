"""A submission that uses more main memory than the machine has for it."""

from __future__ import annotations

import time

from runners.gpu.contract import FailureKind, Fault, Limits, Mode
from tests.gpu.conftest import IDENTITY

LIMIT_BYTES = 300 * 2**20
HOG = """
def custom_kernel(data):
    held = []
    while True:
        held.append(b"x" * 2**24)
"""
# Each of its processes stays below the limit; one that is spared goes on for so many seconds.
HOGS = """
import subprocess, sys
def custom_kernel(data):
    hold = "import time; held = b'x' * (120 * 2**20); time.sleep({seconds})"
    children = [subprocess.Popen([sys.executable, "-c", hold]) for _ in range(3)]
    for child in children:
        child.wait()
    raise SystemExit(3)
"""
KILLED = "==PROF== Connected\n==ERROR== The application returned an error code (9).\n"


def test_a_run_above_its_memory_is_ended_and_told_why(run):
    began = time.monotonic()
    record = run(HOG, family_bytes=LIMIT_BYTES).runs["test"]

    assert time.monotonic() - began < 50  # not by its time limit
    assert record.failure.kind is FailureKind.OUT_OF_MEMORY
    assert record.failure.kind.fault is Fault.SUBMISSION
    assert "more memory than it is given" in record.run.stderr


def test_the_memory_of_a_family_is_that_of_all_its_processes(run):
    record = run(HOGS.format(seconds=2), family_bytes=LIMIT_BYTES).runs["test"]

    assert record.failure.kind is FailureKind.OUT_OF_MEMORY


def test_a_run_that_waits_for_good_after_a_kill_is_told_the_kill(profile, run, machine):
    """As a pool of workers does that lost one."""
    hogs, limits = HOGS.format(seconds=600), Limits(test_s=6, capture_s=6)
    machine.plan_capture(report=None)

    record = run(hogs, family_bytes=LIMIT_BYTES, limits=limits).runs["test"]
    assert record.failure.kind is FailureKind.OUT_OF_MEMORY
    record = profile(hogs, family_bytes=LIMIT_BYTES, limits=limits).runs["profile.0"]
    assert record.failure.kind is FailureKind.OUT_OF_MEMORY


def test_under_ncu_it_is_told_as_memory_and_not_as_a_crash(profile, machine):
    """ncu says 9 for a program that SIGKILL ended, which a program may also return by itself."""
    machine.plan_capture(report=None, rc=9, log=KILLED)

    assert profile(HOG, family_bytes=LIMIT_BYTES).runs["profile.0"].failure.kind is (
        FailureKind.OUT_OF_MEMORY
    )

    failure = profile(IDENTITY + "raise SystemExit(9)").runs["profile.0"].failure
    assert failure.kind is FailureKind.EVALUATOR_CRASHED


def test_each_capture_is_judged_by_its_own_memory(run, machine):
    """The first benchmark uses too much, the second crashes."""
    machine.plan_capture(report=None, rc=9, log=KILLED)
    submission = HOG.replace("held = []", "assert '1024' in data; held = []")
    kinds = run(submission, Mode.PROFILE, selected=(0, 1), family_bytes=LIMIT_BYTES).kinds

    assert kinds == {
        "profile.0": FailureKind.OUT_OF_MEMORY,
        "profile.1": FailureKind.EVALUATOR_CRASHED,
    }


def test_a_run_below_its_memory_is_left_alone(run):
    assert run(IDENTITY, family_bytes=LIMIT_BYTES).runs["test"].run.passed
