"""Profile mode with a stand-in for ncu that obeys its flags and writes synthetic reports."""

from __future__ import annotations

import hashlib
import itertools
import zipfile

import pytest

from runners.gpu.contract import CaptureOptions, FailureKind, Mode, NoteKind
from runners.gpu.report_framing import read_framing
from tests.gpu.conftest import IDENTITY
from tests.shared import SHARED
from tests.synthetic_reports import DEMO_LAUNCHES, Launch, details_csv, details_text

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


def test_errors_of_the_profiler_beside_good_launches_are_noted(profile, machine):
    machine.plan_capture(Launch(name="k"), rc=1, log="==ERROR== LaunchFailed\n")
    record = profile().runs["profile.0"]

    assert record.failure is None
    assert note_kinds(record) == [NoteKind.PROFILER_ERRORS]
    assert "LaunchFailed" in record.notes[0].message


def test_a_crash_after_the_verdict_is_noted(profile):
    submission = (
        "import atexit, os\natexit.register(lambda: os._exit(7))\n"
        "def custom_kernel(data):\n    return data\n"
    )
    record = profile(submission).runs["profile.0"]

    assert record.failure is None
    assert note_kinds(record) == [NoteKind.PROFILER_ERRORS]
    assert "exit code 7" in record.run.stderr
    assert not record.run.success


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
    assert "as a whole: 1." in record.notes[0].message


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
