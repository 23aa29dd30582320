"""Real child processes of this machine. What every runner must do is in tests/contract."""

from __future__ import annotations

import asyncio
import json
import os
import pwd
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path

import pytest

from runners.backends.base import Finished, Pending
from runners.backends.local import LocalRunner
from runners.backends.local_family import read_process
from runners.exceptions import RunnerFault
from runners.gpu import envelope, wire
from runners.gpu.contract import JobConfig, Limits, Mode

EVALUATOR = """
import os, submission
with os.fdopen(int(os.environ["POPCORN_FD"]), "w") as out:
    out.write(f"said: {submission.work()}\\ncheck: pass\\n")
"""
AT_LEAST_ONE_ESCAPES = """
import os, subprocess, sys, time
def work():
    for new_session in (True, False):
        subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"],
                         start_new_session=new_session)
    subprocess.run([sys.executable, "-c",
        "import subprocess, sys; subprocess.Popen([sys.executable, '-c', "
        "'import time; time.sleep(600)'], start_new_session=True, env={})"])
    open(READY, "w").close()
    time.sleep(600)
"""


def config_of(submission: str) -> JobConfig:
    return JobConfig(
        job_id=str(uuid.uuid4()),
        attempt=1,
        mode=Mode.TEST,
        lang="py",
        main="eval.py",
        sources={"eval.py": EVALUATOR, "submission.py": submission},
        tests=({"size": 8},),
        limits=Limits(test_s=60, compile_s=60),
    )


@pytest.fixture
def local(settings, tmp_path):
    settings.DATA_DIR = tmp_path
    runner = LocalRunner()
    yield runner
    for run in tmp_path.glob("local-runs/*"):
        asyncio.run(runner.cancel(run.name))
        asyncio.run(runner.release(run.name))


def children() -> set[int]:
    """Those of this process, with the ended ones that nobody has reaped."""
    pids = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]
    found = [process for pid in pids if (process := read_process(pid))]
    return {process.pid for process in found if process.parent == os.getpid()}


def start(runner, submission: str) -> str:
    return asyncio.run(runner.start("CPU", config_of(submission)))


def poll(runner, external_id: str):
    return asyncio.run(runner.poll(external_id))


def wait_until(condition, seconds=90):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.05)


def said_by(runner, submission: str) -> str:
    """What `work()` of a submission returned."""
    external_id = start(runner, submission)
    wait_until(lambda: isinstance(poll(runner, external_id), Finished))
    outcome = envelope.read(poll(runner, external_id).envelope).outcome
    assert outcome.failure is None
    record = outcome.runs["test"]
    assert record.run is not None, record.failure
    return record.run.result["said"]


def pid_of(runner, external_id: str) -> int:
    pid_file = runner.root / external_id / "pid"
    wait_until(pid_file.exists)
    return int(pid_file.read_text().split()[0])


def family_of(pid: int) -> set[int]:
    """All below a process, by /proc."""
    parents = {
        int(entry.name): int((entry / "stat").read_text().rpartition(")")[2].split()[1])
        for entry in Path("/proc").iterdir()
        if entry.name.isdigit() and (entry / "stat").exists()
    }
    found, waiting = set(), [pid]
    while waiting:
        parent = waiting.pop()
        below = {child for child, its_parent in parents.items() if its_parent == parent}
        waiting += below - found
        found |= below
    return found


def is_gone(pid: int) -> bool:
    process = read_process(pid)
    return process is None or not process.is_there


@pytest.fixture
def escaping(local, tmp_path_factory):
    """A run whose submission started processes in sessions of their own: id, and the family."""
    folder = Path("/tmp") / f"kernelbot-test-{uuid.uuid4().hex}"
    folder.mkdir()
    folder.chmod(0o777)
    ready = folder / "ready"
    external_id = start(local, f"READY = {str(ready)!r}\n" + AT_LEAST_ONE_ESCAPES)
    wait_until(ready.exists)
    yield external_id, {pid_of(local, external_id), *family_of(pid_of(local, external_id))}
    ready.unlink()
    folder.rmdir()


def test_cancelling_ends_the_whole_family(local, escaping):
    """FR-14: also what is in a session of its own, with its parent gone."""
    external_id, family = escaping
    assert len(family) >= 5

    asyncio.run(LocalRunner().cancel(external_id))

    assert [pid for pid in family if not is_gone(pid)] == []


def test_cancelling_ends_the_family_when_the_gpu_side_hangs(local, escaping):
    """FR-14: the kill does not depend on the help of what is killed."""
    external_id, family = escaping
    os.kill(pid_of(local, external_id), signal.SIGSTOP)

    asyncio.run(local.cancel(external_id))

    assert [pid for pid in family if not is_gone(pid)] == []


def test_a_run_whose_process_is_killed_is_lost(local):
    external_id = start(local, "import time\ndef work(): time.sleep(600)\n")
    os.kill(pid_of(local, external_id), signal.SIGKILL)

    with pytest.raises(RunnerFault) as raised:
        wait_until(lambda: not isinstance(poll(local, external_id), Pending))

    assert (raised.value.kind, raised.value.retryable) == ("run_lost", True)


def test_a_run_that_is_cancelled_as_it_is_launched_leaves_no_process(local):
    """Its process finds that out only once Python has begun, and must be reaped all the same."""
    before = children()

    for _ in range(3):
        external_id = start(local, "import time\ndef work(): time.sleep(600)\n")
        asyncio.run(local.cancel(external_id))

    assert children() == before


def test_a_pid_that_was_given_to_another_process_is_not_touched(local):
    external_id = start(local, "import time\ndef work(): time.sleep(600)\n")
    ours = pid_of(local, external_id)
    pid_file = local.root / external_id / "pid"
    right = pid_file.read_text()
    pid_file.write_text(f"{ours} 1")  # as if the process of that pid had begun at another time

    with pytest.raises(RunnerFault):
        poll(local, external_id)
    pid_file.write_text(f"{os.getpid()} 1")
    asyncio.run(LocalRunner().cancel(external_id))  # we are still here

    pid_file.write_text(right)


def test_a_run_that_is_launched_twice_is_run_once(local):
    """FR-30: the dispatcher was killed between the launch and the pid file."""
    config = config_of("import os\ndef work(): return os.getpid()\n")
    (local.root / f"{config.job_id}-1").mkdir(parents=True)
    first = asyncio.run(local.start("CPU", config))
    next_dispatcher = LocalRunner()
    second = asyncio.run(next_dispatcher.start("CPU", config))

    assert first == second
    for runner in (local, next_dispatcher):
        wait_until(lambda runner=runner: isinstance(poll(runner, first), Finished))
    assert len(list(Path(local.root / first).glob("pid*"))) == 1
    for runner in (local, next_dispatcher):
        asyncio.run(runner.release(first))


def test_a_submission_sees_no_secret_and_no_open_file_of_ours(local, monkeypatch, tmp_path):
    for name in ("SECRET_KEY", "DATABASE_URL", "MODAL_TOKEN_SECRET", "KERNELBOT_ANYTHING"):
        monkeypatch.setenv(name, "secret-value")
    with (tmp_path / "open").open("w") as ours:
        os.set_inheritable(ours.fileno(), True)
        said = json.loads(
            said_by(
                local,
                "import json, os\n"
                "def work():\n"
                "    fds = {n: os.readlink(f'/proc/self/fd/{n}') for n in os.listdir('/proc/self/fd')\n"
                "           if os.path.exists(f'/proc/self/fd/{n}')}\n"
                "    return json.dumps([dict(os.environ), fds])\n",
            )
        )

    environment, descriptors = said
    assert "secret-value" not in json.dumps(environment)
    assert str(tmp_path) not in json.dumps(descriptors)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can run it as somebody else")
def test_a_submission_runs_as_another_user_who_cannot_read_our_data(local, settings, tmp_path):
    (tmp_path / "database").write_text("secret")
    (tmp_path / "database").chmod(0o600)

    said = said_by(
        local,
        "import os\n"
        "def work():\n"
        "    may_read = os.access(DATABASE, os.R_OK)\n"
        "    return f'{os.getuid()} {may_read}'\n"
        f"DATABASE = {str(tmp_path / 'database')!r}\n",
    )

    uid = pwd.getpwnam(settings.LOCAL_RUN_USER).pw_uid
    assert said == f"{uid} False"


def test_memory_of_a_submission_is_limited_where_no_gpu_is_used(local, settings):
    settings.LOCAL_MEMORY_BYTES = 512 * 2**20

    said = said_by(
        local,
        "def work():\n"
        "    try:\n        bytearray(2**30)\n"
        "    except MemoryError:\n        return 'no more'\n"
        "    return 'as much as it likes'\n",
    )

    assert said == "no more"


def test_released_runs_leave_nothing_behind(local):
    external_id = start(local, "def work(): return 1\n")
    wait_until(lambda: isinstance(poll(local, external_id), Finished))
    workspace = Path((local.root / external_id / "workspace").read_text())
    assert workspace.exists()

    asyncio.run(local.release(external_id))

    assert not workspace.exists()
    assert list(local.root.iterdir()) == []


def test_progress_is_told_while_it_runs(local):
    external_id = start(local, "import time\ndef work(): time.sleep(600)\n")

    wait_until(lambda: poll(local, external_id) == Pending("running test"))


STARTER = """
import asyncio, os, sys, time
import django
django.setup()
from runners.backends.local import LocalRunner
from runners.gpu.contract import read_config
config = read_config(sys.stdin.buffer.read())
print(asyncio.run(LocalRunner().start("CPU", config)), flush=True)
time.sleep(600)
"""


def test_a_run_outlives_the_dispatcher_that_started_it(local, tmp_path):
    """FR-30: killed while it runs, and found again by its id."""
    slow = "import time\ndef work(): time.sleep(3)\n"
    starter = subprocess.Popen(
        [sys.executable, "-c", STARTER],
        cwd=Path(__file__).resolve().parents[2],
        env=os.environ
        | {"DATA_DIR": str(tmp_path), "DJANGO_SETTINGS_MODULE": "kernelbot_site.settings"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    config = config_of(slow)
    starter.stdin.write(wire.dumps(config))
    starter.stdin.close()
    external_id = starter.stdout.readline().decode().strip()
    starter.kill()
    starter.wait()
    starter.stdout.close()
    assert isinstance(poll(local, external_id), Pending)

    wait_until(lambda: isinstance(poll(local, external_id), Finished))
    outcome = envelope.read(poll(local, external_id).envelope).outcome
    assert (outcome.job_id, outcome.failure) == (config.job_id, None)
