"""What a hostile submission can do on this machine, tried by submissions that try it.

docs/operations.md, "The local runner", says what each of these lines is worth.
"""

from __future__ import annotations

import asyncio
import json
import os
import pwd
import shutil
import socket
import subprocess
import sys
import uuid
from dataclasses import replace
from pathlib import Path

import pytest

from runners.backends import local_child
from runners.backends.base import Finished
from runners.gpu import envelope
from runners.gpu.contract import Limits
from tests.runners import test_local_runner
from tests.runners.test_local_runner import config_of, poll, said_by, start, wait_until

local = test_local_runner.local
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can run it as somebody else")
NETWORK = """
import json, socket
def reach(address):
    try:
        socket.create_connection(address, timeout=5).close()
    except OSError as error:
        return type(error).__name__
    return 'reached'
def report():
    own = socket.create_server(('127.0.0.1', 0))
    names = [name for _, name in socket.if_nameindex()]
    return json.dumps([reach(('127.0.0.1', PORT)), reach(own.getsockname()), names])
"""


def can_close_networks(*as_user: str) -> bool:
    """Whether this system gives such a user a network of its own."""
    unshare = ["unshare", "--net"] if os.geteuid() == 0 and not as_user else ["unshare", "-rn"]
    return subprocess.run([*as_user, *unshare, "true"], capture_output=True).returncode == 0


@pytest.fixture
def port():
    """Somebody listens there, as our database and our web server do."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def test_a_submission_talks_to_itself_and_to_nobody_else(local, port):
    if not can_close_networks():
        pytest.skip("this system gives no network of one's own")
    said = said_by(local, f"PORT = {port}\n{NETWORK}\nwork = report\n")

    assert json.loads(said) == ["ConnectionRefusedError", "reached", ["lo"]]


def test_the_network_is_there_for_submissions_that_an_operator_allows_it(local, settings, port):
    settings.LOCAL_NETWORK = True

    said = said_by(local, f"PORT = {port}\n{NETWORK}\nwork = report\n")

    assert json.loads(said)[:2] == ["reached", "reached"]


# Dropped after the start, since this Python may lie where nobody else may look.
AS_NOBODY = """
import __future__, ctypes, fcntl, os, socket, struct, sys
child = compile(open("child.py").read(), "child.py", "exec")
if os.geteuid() == 0:
    os.setgroups([])
    os.setresgid(65534, 65534, 65534)
    os.setresuid(65534, 65534, 65534)
    ctypes.CDLL(None).prctl(4, 1, 0, 0, 0)  # as whoever began as that user
exec(child, {"__name__": "__main__"})
"""


def test_an_ordinary_user_gets_a_network_of_its_own_or_runs_without(port):
    """On a laptop without root: what the system refuses is said, and the run goes on."""
    folder = Path(f"/tmp/kernelbot-test-{uuid.uuid4().hex}")
    folder.mkdir()
    folder.chmod(0o777)
    shutil.copy(local_child.__file__, folder / "child.py")
    (folder / "child.py").chmod(0o644)
    uid = os.geteuid() or 65534
    as_user = ["setpriv", f"--reuid={uid}", "--clear-groups"] if os.geteuid() == 0 else []
    python = shutil.which("python3", path=os.defpath) or sys.executable
    code = f"PORT = {port}\n{NETWORK}\nimport os; print(json.dumps([os.getuid(), report()]))"
    try:
        done = subprocess.run(
            [sys.executable, "-S", "-c", AS_NOBODY, "pid", "closed", python, "-c", code],
            cwd=folder,
            capture_output=True,
            text=True,
        )
    finally:
        shutil.rmtree(folder)

    assert done.returncode == 0, done.stderr
    ran_as, report = json.loads(done.stdout)
    of_the_machine, own, _ = json.loads(report)
    is_closed = of_the_machine == "ConnectionRefusedError"
    assert (ran_as, own) == (uid, "reached")
    assert is_closed == can_close_networks(*as_user)
    assert is_closed != ("shares the machine's network" in done.stderr)


@as_root
def test_a_submission_reads_no_secret_of_any_process_and_changes_nobodys_files(
    local,
    tmp_path,
    monkeypatch,
):
    """Its own environment and descriptors are in test_local_runner."""
    sleeper = subprocess.Popen(["sleep", "600"], env={"SECRET_KEY": "secret-value"})
    other = start(local, "import time\ndef work(): time.sleep(600)\n")
    workspace = local.root / other / "workspace"
    wait_until(workspace.exists)
    tmp_path.chmod(0o755)
    try:
        said = said_by(
            local,
            "import json, os, pathlib\n"
            f"TARGETS = {[str(local.root / other / 'config.json'), str(local.root / 'new'), str(tmp_path / 'new'), workspace.read_text() + '/new', str(Path(__file__).parent / 'new')]!r}\n"
            "def work():\n"
            "    written, secrets, killed = [], 0, 0\n"
            "    for target in TARGETS:\n"
            "        try:\n            pathlib.Path(target).write_text('x'); written.append(target)\n"
            "        except OSError:\n            pass\n"
            "    for entry in os.scandir('/proc'):\n"
            "        try:\n"
            "            secrets += b'secret-value' in pathlib.Path(entry.path, 'environ').read_bytes()\n"
            "        except OSError:\n            pass\n"
            f"    for pid in ({sleeper.pid}, {os.getpid()}):\n"
            "        try:\n            os.kill(pid, 9); killed += 1\n"
            "        except OSError:\n            pass\n"
            "    return json.dumps([written, secrets, killed])\n",
        )
        assert sleeper.poll() is None
    finally:
        sleeper.kill()
        sleeper.wait()

    assert json.loads(said) == [[], 0, 0]


@as_root
def test_a_fork_bomb_ends_at_its_limit_and_all_of_it_is_gone_afterwards(local, settings):
    settings.LOCAL_PROCESSES = 40

    said = said_by(
        local,
        "import os, time\n"
        "def work():\n"
        "    made = 0\n"
        "    try:\n"
        "        while made < 1000:\n"
        "            if os.fork() == 0:\n"
        "                os.setsid()\n"
        "                time.sleep(600)\n"
        "            made += 1\n"
        "    except BlockingIOError:\n"
        "        return str(made)\n"
        "    return 'as many as it likes'\n",
    )

    assert int(said) < 40
    uid = pwd.getpwnam(settings.LOCAL_RUN_USER).pw_uid
    wait_until(lambda: not sleeping_forks_of(uid))


def sleeping_forks_of(uid: int) -> list[int]:
    mark = b"eval.py"
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                is_one = entry.stat().st_uid == uid and mark in (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if is_one:
                found.append(int(entry.name))
    return found


def test_endless_output_is_cut_and_endless_files_end_the_run(local):
    """FR-21: neither the dispatcher's memory nor its disk grows with what a submission says."""
    config = replace(
        config_of(
            "import sys\n"
            "def work():\n"
            "    for _ in range(2000): sys.stdout.write('x' * 10_000)\n"
            "    with open('big', 'wb') as out:\n"
            "        while True: out.write(bytes(2**20))\n"
        ),
        limits=Limits(test_s=60, compile_s=60, file_bytes=8 * 2**20),
    )
    external_id = asyncio.run(local.start("CPU", config))
    wait_until(lambda: isinstance(poll(local, external_id), Finished))
    result = poll(local, external_id).envelope

    record = envelope.read(result).outcome.runs["test"]
    assert record.run is not None
    assert not record.run.passed
    assert len(record.run.stdout) < 100_000
    assert "File too large" in record.run.stderr or record.run.exit_code < 0
    assert result.stat().st_size < 2**20
