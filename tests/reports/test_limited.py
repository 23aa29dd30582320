"""Programs stand in for the reader, through the very function that runs it."""

from __future__ import annotations

import json
import os
import threading
import time

import pytest

from profiling.reports.limited import ChildLimits, run_limited

# Only what ought to meet its clock gets a short one, so that a slow machine changes nothing.
PATIENT = ChildLimits(wall_s=300)


@pytest.fixture
def run(tmp_path):
    def run_program(text, limits=PATIENT, argument="it"):
        program = tmp_path / "program.py"
        program.write_text(text)
        return run_limited(program, argument, limits)

    return run_program


def test_output_argument_and_exit_code_come_back(run):
    ended = run("import sys; print(sys.argv[1:]); sys.exit(7)", argument="a b;$c")

    assert (ended.returncode, ended.output) == (7, b"['a b;$c']\n")
    assert (ended.timed_out, ended.overflowed, ended.how) == (False, False, "exit code 7")


def test_a_program_that_sleeps_is_ended_by_the_clock(run):
    started = time.monotonic()

    ended = run("import time; time.sleep(600)", ChildLimits(wall_s=0.5))

    assert (ended.timed_out, ended.how) == (True, "SIGKILL")
    assert time.monotonic() - started < 300


def test_a_program_that_closes_its_output_and_sleeps_is_ended_too(run):
    ended = run("import os, time; os.close(1); time.sleep(600)", ChildLimits(wall_s=0.5))

    assert ended.timed_out


def test_a_program_that_computes_without_end_is_ended_by_its_processor_time(run):
    ended = run("while True: pass", ChildLimits(wall_s=300, cpu_s=1))

    assert (ended.timed_out, ended.how) == (True, "SIGXCPU")


def test_a_program_that_eats_memory_does_not_get_it(run):
    text = """
held = []
try:
    while True:
        held.append(bytearray(2**24))
except MemoryError:
    print(len(held))
"""
    ended = run(text, ChildLimits(wall_s=300, memory_bytes=2**29))

    assert ended.returncode == 0
    assert 0 < int(ended.output) < 2**29 // 2**24


def test_a_program_that_prints_without_end_is_ended(run):
    ended = run("while True: print('x' * 9999)", ChildLimits(wall_s=300, output_bytes=100_000))

    assert (ended.overflowed, ended.timed_out, len(ended.output)) == (True, False, 100_000)


def test_a_program_can_write_no_file_and_open_few(run, tmp_path):
    text = f"""
import errno, os
try:
    with open({str(tmp_path / "new")!r}, "wb", buffering=0) as file:
        file.write(b"x")
except OSError as error:
    print(errno.errorcode[error.errno])
held = []
try:
    while True:
        held.append(os.open("/", os.O_RDONLY))
except OSError as error:
    print(errno.errorcode[error.errno], len(held) < 64)
"""
    assert run(text).output == b"EFBIG\nEMFILE True\n"


def test_a_program_inherits_neither_environment_nor_descriptors_nor_input(run, monkeypatch):
    monkeypatch.setenv("PROBE_SECRET", "MARK-SECRET")
    read_end, write_end = os.pipe()
    os.set_inheritable(write_end, True)
    try:
        ended = run(
            "import json, os, sys\n"
            "fds = [fd for fd in range(3, 60) if os.path.exists(f'/proc/self/fd/{fd}')]\n"
            "print(json.dumps([sorted(os.environ), fds, sys.stdin.read()]))"
        )
    finally:
        os.close(read_end)
        os.close(write_end)

    assert json.loads(ended.output) == [["LC_ALL"], [], ""]


def test_what_a_program_started_does_not_outlive_it(run, tmp_path):
    text = """
import os, time
if os.fork() == 0:
    os.close(1)
    time.sleep(600)
print(os.getpgid(0))
"""
    group = int(run(text).output)

    for _ in range(3000):
        if not alive(group):
            return
        time.sleep(0.01)
    pytest.fail("a process of its group lives on")


def alive(group):
    """Whether a process of the group runs: a dead one that nobody reaped yet does not."""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/stat") as stat:
                state, _, its_group, *_ = stat.read().rpartition(")")[2].split()
        except OSError:
            continue
        if int(its_group) == group and state not in "ZX":
            return True
    return False


def test_programs_run_side_by_side_in_threads(run, tmp_path):
    program = tmp_path / "side.py"
    program.write_text("import sys; print(sys.argv[1])")
    outputs = {}

    def work(number):
        outputs[number] = run_limited(program, str(number), PATIENT).output

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert outputs == {number: f"{number}\n".encode() for number in range(6)}
