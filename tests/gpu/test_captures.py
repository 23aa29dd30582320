"""Profile mode with a stand-in for ncu that obeys its flags and writes synthetic reports."""

from __future__ import annotations

import hashlib
import itertools
import json
import zipfile

import pytest

from runners.gpu.contract import CaptureOptions, FailureKind, Fault, Limits, Mode, NoteKind
from runners.gpu.report_framing import read_framing
from tests.gpu.conftest import IDENTITY
from tests.shared import SHARED
from tests.synthetic_reports import DEMO_LAUNCHES, Launch, details_csv, details_text, write_report

PROFILING = '==PROF== Profiling "{}" - {}: 0%....50%....100% - 39 passes\n'


def note_kinds(record):
    return [note.kind for note in record.notes]


def test_a_capture_is_exported_and_archived(profile, machine, tmp_path):
    job = profile()

    record = job.runs["profile.0"]
    assert job.outcome.failure is None
    assert record.failure is None
    assert record.notes == ()
    assert record.run.success
    assert record.run.passed
    assert record.run.result["benchmark.0.spec"] == "size: 1024; seed: 7"
    assert record.capture.profiler == "Nsight-Compute"
    assert record.capture.ncu_version == "2025.2.1.0"
    assert record.capture.launches == 1
    archive = job.archives[record.capture.archive]
    assert record.capture.archive_bytes == archive.stat().st_size
    assert record.capture.archive_sha256 == hashlib.sha256(archive.read_bytes()).hexdigest()
    with zipfile.ZipFile(archive) as packed:
        assert packed.namelist() == ["profile.ncu-rep", "ncu-details.txt", "ncu-details.csv"]
        assert packed.read("ncu-details.txt").decode() == details_text(DEMO_LAUNCHES)
        assert packed.read("ncu-details.csv").decode() == details_csv(DEMO_LAUNCHES)
        (tmp_path / "out.ncu-rep").write_bytes(packed.read("profile.ncu-rep"))
    assert read_framing(tmp_path / "out.ncu-rep").kernels[0].function == "my_kernel"


def test_the_command_line_is_that_of_the_wire_contract(profile, machine):
    profile()

    argv = machine.captures()[0]["argv"]
    flags, program = argv[: argv.index("--")], argv[argv.index("--") + 1 :]
    pairs = dict(itertools.pairwise(flags))
    expected = {
        "--set": "full",
        "--target-processes": "all",
        "--nvtx-include": "custom_kernel/",
        "--import-source": "1",
        "--launch-count": "10",
        "--cache-control": "all",
        "--clock-control": "none",
        "--replay-mode": "kernel",
    }
    assert {name: pairs[name] for name in expected} == expected
    assert "--nvtx" in flags
    assert "--force-overwrite" in flags
    assert pairs["--export"].endswith("/profile.ncu-rep")
    assert "--kernel-name" not in flags
    assert "--kernel-name-base" not in flags
    assert program[1:3] == ["eval.py", "profile"]
    assert machine.captures()[0]["env"]["POPCORN_NCU"] == "1"


def test_the_options_go_in_as_arguments_of_their_own(profile, machine):
    options = CaptureOptions(
        ncu_kernel_name="regex:a b; $(c)|d",
        ncu_kernel_name_base="demangled",
        ncu_launch_count=3,
    )
    profile(capture=options)

    argv = machine.captures()[0]["argv"]
    pairs = dict(itertools.pairwise(argv))
    assert pairs["--kernel-name"] == "regex:a b; $(c)|d"
    assert pairs["--kernel-name-base"] == "demangled"
    assert pairs["--launch-count"] == "3"


@pytest.mark.parametrize(
    "options",
    [
        {"ncu_kernel_name": "--set"},
        {"ncu_kernel_name": ""},
        {"ncu_kernel_name_base": "short"},
        {"ncu_launch_count": 0},
        {"ncu_launch_count": -1},
    ],
)
def test_unusable_options_never_reach_the_profiler(profile, machine, options):
    """FR-04: a value can never become an option of the tool, an empty one is not "no filter"."""
    job = profile(capture=CaptureOptions(**options))

    assert job.outcome.failure.kind is FailureKind.BAD_CONFIG
    assert not (machine.tools / "calls.jsonl").exists()


def test_each_selected_benchmark_is_a_capture_under_its_own_index(run, machine):
    """FR-07, FR-20."""
    job = run(IDENTITY, Mode.PROFILE, selected=(0, 2))

    assert list(job.runs) == ["profile.0", "profile.2"]
    specs = {key: record.run.result["benchmark.0.spec"] for key, record in job.runs.items()}
    assert specs == {"profile.0": "size: 1024; seed: 7", "profile.2": "size: 4096; seed: 9"}
    assert sorted(job.archives) == ["profile.0.zip", "profile.2.zip"]
    assert "capturing benchmark 2 of 2 (index 2)" in job.phases


def test_the_same_capture_gives_the_same_archive(profile):
    first, second = profile(), profile()
    assert (
        first.archives["profile.0.zip"].read_bytes()
        == second.archives["profile.0.zip"].read_bytes()
    )


def test_one_failing_benchmark_does_not_take_the_others_with_it(run, machine):
    """FR-12: partial success across benchmarks is kept."""
    submission = (
        "import os\n"
        "def custom_kernel(data):\n"
        "    if '2048' in data:\n"
        "        os._exit(1)\n"
        "    return data\n"
    )
    machine.plan_capture(Launch(name="k"), report=None, report_before="made.ncu-rep")
    job = run(submission, Mode.PROFILE, selected=(0, 1, 2))

    assert job.kinds == {
        "profile.0": None,
        "profile.1": FailureKind.EVALUATOR_CRASHED,
        "profile.2": None,
    }
    assert sorted(job.archives) == ["profile.0.zip", "profile.2.zip"]


def test_the_launch_limit_is_said(profile, machine):
    """FR-01: ten launches at a limit of ten are never called complete."""
    machine.plan_capture(*[Launch(name="vectorized_elementwise_kernel")] * 10)
    record = profile().runs["profile.0"]

    assert note_kinds(record) == [NoteKind.LAUNCH_LIMIT_REACHED]
    assert "10 captured, more may follow" in record.notes[0].message
    assert "10 captured, more may follow" in record.run.stderr
    assert record.run.success


def test_fewer_launches_than_the_limit_need_no_word(profile, machine):
    machine.plan_capture(*[Launch(name="k")] * 9)
    assert profile().runs["profile.0"].notes == ()


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


def test_errors_of_the_profiler_beside_good_launches_are_noted(profile, machine):
    machine.plan_capture(Launch(name="k"), rc=1, log="==ERROR== LaunchFailed\n")
    record = profile().runs["profile.0"]

    assert record.failure is None
    assert note_kinds(record) == [NoteKind.PROFILER_ERRORS]
    assert "LaunchFailed" in record.notes[0].message


def test_a_graph_is_no_kernel_and_not_nothing(profile, machine):
    """FR-06: a report with only graph results is shown as such."""
    header = b"\x48\x01\x28\x06"  # NumGraphResults 1, PayloadSize 6
    (machine.tools / "graph.ncu-rep").write_bytes(
        b"NVR\0\x02\0\0\0\x08\x07\x04\0\0\0" + header + b"\x02\0\0\0\x08\x01"
    )
    machine.plan_capture(report="graph.ncu-rep")
    record = profile().runs["profile.0"]

    assert record.failure is None
    assert record.capture.launches == 0
    assert note_kinds(record) == [NoteKind.GRAPH_LAUNCHES]
    assert "1 CUDA graphs" in record.notes[0].message


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


def test_a_wrong_kernel_can_be_profiled_and_is_told(profile):
    record = profile("def custom_kernel(data):\n    return None\n").runs["profile.0"]

    assert record.failure is None
    assert record.run.success
    assert not record.run.passed
    assert record.capture.launches == 1
    assert note_kinds(record) == [NoteKind.WRONG_RESULT]


def test_a_capture_without_a_verdict_says_so(profile):
    record = profile("import os\ndef custom_kernel(data):\n    os._exit(0)\n").runs["profile.0"]
    assert record.failure is None
    assert note_kinds(record) == [NoteKind.NO_VERDICT]


@pytest.mark.parametrize(
    ("orders", "reason"),
    [
        ({"import_rc": 3}, "exit code 3"),
        ({"csv": '"ID","Metric Name"\n'}, "no rows"),
        ({"csv": ""}, "no rows"),
    ],
)
def test_a_failed_export_is_noted_and_the_archive_returned(profile, machine, orders, reason):
    """FR-18: no rows are told as such, and are no crash."""
    machine.plan_capture(Launch(name="k"), **orders)
    job = profile()

    record = job.runs["profile.0"]
    assert record.failure is None
    assert NoteKind.EXPORT_FAILED in note_kinds(record)
    assert reason in record.run.stderr
    assert not record.run.success
    assert "profile.ncu-rep" in zipfile.ZipFile(job.archives["profile.0.zip"]).namelist()


def test_lines_before_the_header_of_the_csv_do_no_harm(profile, machine):
    """FR-18."""
    csv = '==PROF== Connected\nprinted by a program\n"ID","Other"\n"0","1"\n'
    machine.plan_capture(Launch(name="k"), csv=csv)
    assert profile().runs["profile.0"].run.success


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


def test_the_extract_is_the_readable_part_of_the_details(profile, machine):
    sections = "".join(
        f"    Section: {title}\n    value of {title}\n"
        for title in ("GPU Speed Of Light Throughput", "Occupancy", "Warp State Statistics")
    )
    kernels = "".join(f"  kernel_{n} (1, 1, 1)x(1, 1, 1), CC 9.0\n{sections}" for n in range(3))
    machine.plan_capture(Launch(name="k"), text=kernels)
    extract = profile().runs["profile.0"].capture.extract

    assert "kernel_0" in extract
    assert "kernel_1" in extract
    assert "kernel_2" not in extract
    assert "value of GPU Speed Of Light Throughput" in extract
    assert "value of Warp State Statistics" in extract
    assert "Occupancy" not in extract


@pytest.mark.skipif(SHARED is None, reason="no shared samples beside the checkout")
def test_a_real_report_is_captured_like_a_synthetic_one(profile, machine):
    sample = SHARED / "ncu-samples" / "b200-ncu2025.2-cublaslt-basic.ncu-rep"
    text = (SHARED / "ncu-samples" / "text" / "details-12-kernels.txt").read_text()
    machine.plan_capture(text=text)
    (machine.tools / "made.ncu-rep").write_bytes(sample.read_bytes())
    record = profile().runs["profile.0"]

    assert record.capture.launches == 1
    lines = record.capture.extract.splitlines()
    assert len(lines) <= 100
    assert sum("add_heat_kernel_2d" in line for line in lines) == 2
