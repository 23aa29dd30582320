"""Captures that fail: each has a kind of its own that says whose fault it is."""

from __future__ import annotations

import json

import pytest

from runners.gpu.contract import CaptureOptions, FailureKind, Fault, Limits, Mode
from tests.gpu.conftest import IDENTITY
from tests.synthetic_reports import Launch, write_report

PROFILING = '==PROF== Profiling "{}" - {}: 0%....50%....100% - 39 passes\n'


def test_launches_of_another_thread_are_explained(profile, machine):
    """FR-02."""
    machine.plan_capture(
        report=None, log="==WARNING== No kernels were profiled.\n==WARNING== push/pop ranges only\n"
    )
    job = profile()

    failure = job.runs["profile.0"].failure
    assert failure.kind is FailureKind.NO_KERNEL_CAPTURED
    assert "thread" in failure.message
    assert "backward" in failure.message
    assert job.archives == {}
    assert not job.runs["profile.0"].run.success


def test_launches_in_a_child_process_are_explained(profile, machine):
    """FR-03."""
    machine.plan_capture(report=None, log="", stdout="==WARNING== use --target-processes all\n")
    failure = profile().runs["profile.0"].failure

    assert failure.kind is FailureKind.NO_KERNEL_CAPTURED
    assert "child processes" in failure.message


def test_an_empty_report_of_megabytes_is_no_success(profile, machine):
    """FR-04: exit code 0 and a file prove nothing."""
    log = (
        "==WARNING== No kernels were profiled.\nAvailable Kernels:\n"
        "\t1. my_kernel\n\t2. vectorized_elementwise_kernel\n\t3. ampere_sgemm\n"
        "==PROF== Disconnected\n"
    )
    machine.plan_capture(log=log)
    write_report(machine.tools / "made.ncu-rep", [], pad_bytes=7_000_000)
    job = profile(capture=CaptureOptions(ncu_kernel_name="regex:my_kernel_v2"))

    failure = job.runs["profile.0"].failure
    assert failure.kind is FailureKind.FILTER_MATCHED_NOTHING
    assert failure.kind.fault is Fault.SUBMISSION
    assert "'regex:my_kernel_v2'" in failure.message
    assert "function name" in failure.message
    assert "my_kernel, vectorized_elementwise_kernel, ampere_sgemm." in failure.message
    assert job.runs["profile.0"].capture is None


@pytest.mark.parametrize("rc", [0, 1])
@pytest.mark.parametrize("logged", [True, False])
def test_counters_that_are_not_permitted_are_our_fault(run, machine, rc, logged):
    """FR-09: and they are not tried again for the other benchmarks."""
    text = (
        "==PROF== Connected to process 4242 (/usr/bin/python3)\n"
        "==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU "
        "Performance Counters on the target device 0.\n"
    )
    machine.plan_capture(report=None, rc=rc, log=text)
    if not logged:  # an old ncu
        plan = json.loads((machine.tools / "plan.json").read_text())
        plan["stdout"] = plan.pop("log")
        (machine.tools / "plan.json").write_text(json.dumps(plan))
    job = run(IDENTITY, Mode.PROFILE, selected=(0, 1))

    assert set(job.kinds.values()) == {FailureKind.COUNTERS_NOT_PERMITTED}
    assert job.outcome.failure.kind is FailureKind.COUNTERS_NOT_PERMITTED
    assert job.outcome.failure.kind.fault is Fault.SERVICE
    assert len(machine.captures()) == 1


def test_replay_without_memory_is_a_failure_of_its_own(profile, machine):
    """FR-13: unless launches were captured, which are worth more than the message."""
    machine.plan_capture(
        Launch(name="k"),
        rc=1,
        log="==ERROR== Failed to save memory for replay\n==ERROR== bad allocation\n",
    )
    failure = profile().runs["profile.0"].failure
    assert failure is None

    machine.plan_capture(
        rc=1,
        report=None,
        log="==ERROR== Failed to save memory for replay\n==ERROR== bad allocation\n",
    )
    failure = profile().runs["profile.0"].failure
    assert failure.kind is FailureKind.REPLAY_OUT_OF_MEMORY
    assert "smaller benchmark" in failure.message


@pytest.mark.parametrize("damage", ["cut", "nameless", "garbage", "empty"])
def test_a_damaged_report_is_our_fault(profile, machine, damage):
    machine.plan_capture(Launch(name=None if damage == "nameless" else "k"))
    report = machine.tools / "made.ncu-rep"
    content = report.read_bytes()
    changed = {"cut": content[:-3], "garbage": b"\0" * 500, "empty": b""}.get(damage, content)
    report.write_bytes(changed)
    job = profile()

    failure = job.runs["profile.0"].failure
    assert failure.kind is FailureKind.REPORT_UNREADABLE
    assert failure.kind.fault is Fault.SERVICE
    assert job.archives == {}


def test_a_report_beyond_the_size_limit_is_told(profile, machine):
    """FR-21."""
    machine.plan_capture()
    write_report(machine.tools / "made.ncu-rep", [Launch(name="k")], pad_bytes=300_000)
    limits = Limits(file_bytes=200_000)
    failure = profile(limits=limits).runs["profile.0"].failure

    assert failure.kind is FailureKind.REPORT_TOO_LARGE
    assert "200000" in failure.message


def test_an_evaluator_that_does_not_know_the_mode(profile, machine):
    """FR-41."""
    machine.plan_capture(report=None)
    failure = profile(evaluator="import sys; sys.exit(2)").runs["profile.0"].failure

    assert failure.kind is FailureKind.PROFILING_NOT_OFFERED
    assert failure.kind.fault is Fault.TASK
    assert "does not offer profiling" in failure.message


def test_the_exit_code_that_ncu_tells_counts_before_its_own(profile, machine):
    machine.plan_capture(
        report=None, run=False, rc=1, log="==ERROR== The application returned an error code (2).\n"
    )
    record = profile().runs["profile.0"]

    assert record.failure.kind is FailureKind.PROFILING_NOT_OFFERED
    assert record.run.exit_code == 2


def test_a_crash_of_the_program_is_no_capture(profile, machine):
    job = profile("def custom_kernel(data):\n    raise ValueError('text for the user')\n")

    record = job.runs["profile.0"]
    assert record.failure.kind is FailureKind.EVALUATOR_CRASHED
    assert "text for the user" in record.run.stderr
    assert record.capture is None
    assert job.archives == {}


def test_an_exception_of_the_submission_stays_text(profile):
    """FR-25: nothing is unpickled."""
    submission = (
        "class Boom(Exception):\n"
        "    def __reduce__(self):\n"
        "        return print, ('owned',)\n"
        "def custom_kernel(data):\n"
        "    raise Boom('text that the user should see')\n"
    )
    record = profile(submission).runs["profile.0"]

    assert "Boom: text that the user should see" in record.run.stderr
    assert "owned" not in record.run.stdout


def test_ncu_that_fails_by_itself_is_our_fault(profile, machine):
    machine.plan_capture(
        report=None, run=False, rc=1, log="==ERROR== unrecognised option '--import-sauce'.\n"
    )
    failure = profile().runs["profile.0"].failure

    assert failure.kind is FailureKind.PROFILER_FAILED
    assert failure.kind.fault is Fault.SERVICE
    assert "unrecognised option" in failure.message


def test_a_missing_profiler_is_our_fault(profile, machine):
    (machine.tools / "ncu").unlink()
    job = profile()

    assert job.outcome.failure.kind is FailureKind.PROFILER_MISSING
    assert job.outcome.failure.kind.fault is Fault.SERVICE
    assert job.runs == {}


@pytest.mark.parametrize(
    ("installed", "good"),
    [("2025.2.1.0", True), ("2025.2.1", True), ("2025.2.10.0", False), ("2026.2.0.0", False)],
)
def test_the_version_wanted_is_checked_before_capturing(profile, machine, installed, good):
    """FR-10."""
    machine.plan_capture(Launch(name="k"), version=installed)
    job = profile(capture=CaptureOptions(ncu_version="2025.2.1"))

    assert (job.outcome.failure is None) is good
    assert len(machine.calls()) == (4 if good else 1)
    if not good:
        assert job.outcome.failure.kind is FailureKind.PROFILER_VERSION
        assert installed in job.outcome.failure.message
