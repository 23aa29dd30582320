"""What a submission may try: floods, forgery, families that outlive it, endless captures."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from runners.gpu.contract import FailureKind, Limits, Mode, NoteKind
from tests.gpu.conftest import IDENTITY
from tests.synthetic_reports import Launch

SHORT = Limits(compile_s=60, test_s=3, capture_s=3)
MARK = "kernelbot-test-family"


def family_of(mark: str) -> list[str]:
    found = []
    for entry in Path("/proc").iterdir():
        try:
            command = (entry / "cmdline").read_bytes()
        except OSError:
            continue
        if mark.encode() in command and entry.name != str(os.getpid()):
            found.append(entry.name)
    return found


def grandchild(mark: str, more: str = "") -> str:
    return (
        "import subprocess, sys\n"
        f"subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)', '{mark}'],"
        f" start_new_session=True{more})\n"
    )


def test_a_family_that_outlives_its_parent_is_ended_at_the_limit(run):
    """FR-14, first form: a grandchild of another session holds the output pipe."""
    mark = f"{MARK}-{time.monotonic_ns()}"
    submission = grandchild(mark) + (
        "print('begun', flush=True)\ndef custom_kernel(data):\n    while True:\n        pass\n"
    )
    record = run(submission, limits=SHORT).runs["test"]

    assert record.failure.kind is FailureKind.TIME_LIMIT
    assert record.run.stdout == "begun\n"
    assert family_of(mark) == []


def test_a_grandchild_does_not_outlive_a_child_that_ends_at_once(run):
    """FR-14, second form."""
    mark = f"{MARK}-{time.monotonic_ns()}"
    record = run(grandchild(mark) + IDENTITY).runs["test"]

    assert record.run.passed
    assert record.run.duration < 60  # the grandchild would have slept for 600 s
    assert family_of(mark) == []


def test_an_orphan_of_an_orphan_is_ended_too(run):
    """FR-14: two forks and a session of its own, as daemons do it."""
    mark = f"{MARK}-{time.monotonic_ns()}"
    submission = IDENTITY + (
        "import os, sys\n"
        "if os.fork() == 0:\n"
        "    os.setsid()\n"
        "    if os.fork() == 0:\n"
        f"        os.execv(sys.executable, [sys.executable, '-c', "
        f"'import time; time.sleep(600)', '{mark}'])\n"
        "    os._exit(0)\n"
    )
    assert run(submission).runs["test"].run.passed
    assert family_of(mark) == []


def test_the_next_job_is_not_affected(run):
    run("def custom_kernel(data):\n    while True:\n        pass\n", limits=SHORT)
    assert run().runs["test"].run.passed


def test_fifty_megabytes_of_output_are_cut_and_counted(run):
    """FR-15 a."""
    result = run(IDENTITY + "print('begin' + 'x' * 50_000_000 + 'end')\n").runs["test"].run

    assert result.passed
    assert len(result.stdout) < 20_000
    assert result.stdout.startswith("begin")
    assert result.stdout.endswith("end\n")
    assert "[cut, 50000009 bytes in all]" in result.stdout


def test_bytes_that_are_not_text_are_replaced_and_nul_removed(run):
    """FR-15 b."""
    submission = IDENTITY + "import os\nos.write(1, b'\\xff\\xfe\\x00\\x80\\n')\n"
    assert run(submission).runs["test"].run.stdout == "\ufffd\ufffd\ufffd\n"


def test_writing_to_every_inherited_descriptor_blocks_nobody(run):
    """FR-15 c."""
    submission = IDENTITY + (
        "import os\n"
        "for fd in range(3, 10):\n"
        "    try:\n"
        "        os.write(fd, b'z' * 200_000)\n"
        "    except OSError:\n"
        "        pass\n"
    )
    assert run(submission).runs["test"].failure is None


def test_endless_output_ends_at_the_limit(run):
    """FR-15 d."""
    submission = "def custom_kernel(data):\n    while True:\n        print('y')\n"
    record = run(submission, limits=SHORT).runs["test"]

    assert record.failure.kind is FailureKind.TIME_LIMIT
    assert record.run.stdout.startswith("y\ny\n")
    assert "bytes in all]" in record.run.stdout


def test_the_output_of_the_harness_is_out_of_reach(run):
    """No descriptor but the standard ones and the result pipe is inherited."""
    submission = IDENTITY + "import os\nprint(os.listdir('/proc/self/fd'))\n"
    with open("/dev/null") as inherited:
        os.set_inheritable(inherited.fileno(), True)
        stdout = run(submission).runs["test"].run.stdout
        assert f"'{inherited.fileno()}'" not in stdout


def test_a_verdict_that_is_contradicted_is_not_believed(run):
    """FR-16 b: the submission writes its own verdict to every descriptor in reach."""
    submission = (
        "import os\n"
        "def custom_kernel(data):\n"
        "    for fd in range(3, 21):\n"
        "        try:\n"
        "            os.write(fd, b'check: pass\\n')\n"
        "        except OSError:\n"
        "            pass\n"
        "    return None\n"
    )
    record = run(submission).runs["test"]

    assert not record.run.passed
    assert record.failure.kind is FailureKind.EVALUATOR_FAILED
    assert "different verdicts" in record.failure.message


def test_printed_messages_of_the_profiler_are_only_output(profile, machine):
    """FR-16 a: what ncu says is read from its log, which the program does not print to."""
    machine.plan_capture(report=None)
    submission = IDENTITY + (
        "print('==ERROR== ERR_NVGPUCTRPERM - no permission')\n"
        "print('==PROF== Profiling \"forged\" - 0: 0%....100% - 39 passes')\n"
        "print('check: pass')\n"
    )
    job = profile(submission)

    assert job.runs["profile.0"].failure.kind is FailureKind.NO_KERNEL_CAPTURED
    assert job.outcome.failure is None
    assert "ERR_NVGPUCTRPERM" in job.runs["profile.0"].run.stdout


def test_a_forged_report_is_not_taken_for_a_capture(profile, machine):
    """FR-16 c: put into the working directory, TMPDIR and every directory in the environment."""
    machine.plan_capture(Launch(name="forged"), report=None)
    forged = machine.tools / "made.ncu-rep"
    submission = IDENTITY + (
        "import os, shutil\n"
        "for folder in ['.', *os.environ.values()]:\n"
        "    if os.path.isdir(folder):\n"
        f"        shutil.copy({str(forged)!r}, os.path.join(folder, 'profile.ncu-rep'))\n"
    )
    job = profile(submission)

    assert job.runs["profile.0"].failure.kind is FailureKind.NO_KERNEL_CAPTURED
    assert job.archives == {}


def test_a_report_that_is_a_link_is_not_followed(profile, machine):
    machine.plan_capture(Launch(name="elsewhere"), report=None)
    forged = machine.tools / "made.ncu-rep"
    script = machine.tools / "ncu"
    script.write_text(
        script.read_text().replace(
            'shutil.copyfile(HERE / name, value_of(arguments, "--export"))',
            'os.symlink(HERE / name, value_of(arguments, "--export"))',
        )
    )
    machine.plan_capture(Launch(name="elsewhere"))
    assert forged.exists()
    assert profile().runs["profile.0"].failure.kind is FailureKind.NO_KERNEL_CAPTURED


def test_the_private_folder_is_in_no_variable_and_not_below_one(profile, machine):
    profile()
    call = machine.captures()[0]
    export = Path(call["argv"][call["argv"].index("--export") + 1])

    assert not any(
        export.is_relative_to(value) for value in call["env"].values() if value[:1] == "/"
    )
    assert len(export.parent.name) >= 8


@pytest.mark.parametrize("stubborn", [True, False])
def test_a_kernel_that_never_ends_is_named_and_its_capture_ended(profile, machine, stubborn):
    """FR-11: also when ncu ignores SIGINT and SIGTERM."""
    machine.plan_capture(
        report=None,
        run=False,
        sleep=600,
        stubborn=stubborn,
        log='==PROF== Profiling "a" - 0: 0%....100% - 3 passes\n==PROF== Profiling "spin" - 1: 0%',
    )
    record = profile(limits=SHORT).runs["profile.0"]

    assert record.failure.kind is FailureKind.TIME_LIMIT
    assert 'It stopped in kernel "spin"' in record.failure.message
    assert "serialises" in record.failure.message
    assert record.run.exit_code == 114
    assert record.run.duration < 60


@pytest.mark.parametrize("when", ["report_before", "report"])
def test_launches_finished_before_the_limit_come_back_as_partial(profile, machine, when):
    """FR-11, FR-12: "report" is an ncu that writes it when it is interrupted."""
    reports = {"report": None, when: "made.ncu-rep"}
    machine.plan_capture(
        *[Launch(name="k")] * 3,
        **reports,
        run=False,
        sleep=600,
        stubborn=when == "report_before",
    )
    job = profile(limits=SHORT)

    record = job.runs["profile.0"]
    assert record.failure is None
    assert record.capture.launches == 3
    assert [note.kind for note in record.notes] == [
        NoteKind.TIME_LIMIT_REACHED,
        NoteKind.NO_VERDICT,
    ]
    assert "Partial" in record.run.stderr
    assert list(job.archives) == ["profile.0.zip"]


def test_at_the_job_limit_what_is_finished_comes_back(run, machine):
    """FR-24: our own limit strikes before the provider's."""
    submission = (
        "import time\n"
        "def custom_kernel(data):\n"
        "    if '2048' in data:\n"
        "        time.sleep(600)\n"
        "    return data\n"
    )
    machine.plan_capture(Launch(name="k"), stubborn=True)
    limits = Limits(compile_s=60, capture_s=20, job_s=8)
    job = run(submission, Mode.PROFILE, selected=(0, 1, 2), limits=limits)

    assert job.kinds == {
        "profile.0": None,
        "profile.1": FailureKind.JOB_TIME_LIMIT,
        "profile.2": FailureKind.JOB_TIME_LIMIT,
    }
    assert job.runs["profile.2"].run is None
    assert list(job.archives) == ["profile.0.zip"]


def test_files_and_memory_are_limited(run):
    submission = IDENTITY + (
        "import resource\n"
        "print(resource.getrlimit(resource.RLIMIT_FSIZE), resource.getrlimit(resource.RLIMIT_AS),"
        " resource.getrlimit(resource.RLIMIT_CORE))\n"
    )
    limits = Limits(file_bytes=10**6, memory_bytes=10**9)
    stdout = run(submission, limits=limits).runs["test"].run.stdout

    assert stdout == "(1000000, 1000000) (1000000000, 1000000000) (0, 0)\n"


def test_the_number_of_processes_is_limited(run):
    submission = IDENTITY + ("import resource\nprint(resource.getrlimit(resource.RLIMIT_NPROC))\n")
    stdout = run(submission, limits=Limits(processes=200)).runs["test"].run.stdout
    assert stdout == "(200, 200)\n"


def test_an_outcome_too_large_to_read_is_cut_and_still_an_outcome(run):
    evaluator = (
        "import os\n"
        "with os.fdopen(int(os.environ['POPCORN_FD']), 'wb') as out:\n"
        "    for n in range(10):\n"
        "        out.write(b'k%d: ' % n + b'\\xff' * 100_000 + b'\\n')\n"
        "    out.write(b'check: pass\\n')\n"
    )
    job = run(evaluator=evaluator, mode=Mode.LEADERBOARD)

    assert "too large" in job.runs["test"].run.stderr
    assert not job.runs["test"].run.passed
