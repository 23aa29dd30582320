"""Jobs in Modal's own container runtime, from the files that a real deploy mounted, on a CPU."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from pathlib import Path

import pytest

from runners.backends.base import Finished
from runners.backends.modal_runner import ModalRunner
from runners.gpu import envelope
from runners.gpu.build import build_id
from runners.gpu.contract import FailureKind, JobConfig, Limits, Mode
from tests.fake_modal.server import FakeModal
from tests.modal.test_deploy import deploy

EVALUATOR = """
import os, sys
from submission import custom_kernel
with os.fdopen(int(os.environ["POPCORN_FD"]), "w") as log:
    print("test-count: 1", file=log)
    print("test.0.status: pass", file=log)
    print("check: pass" if custom_kernel(20) == 21 else "check: fail", file=log)
"""


def make_job(submission: str, **changes) -> JobConfig:
    fields = {
        "job_id": "job-7",
        "attempt": 2,
        "mode": Mode.TEST,
        "lang": "py",
        "main": "eval.py",
        "sources": {"eval.py": EVALUATOR, "submission.py": submission},
        "tests": ({"size": 8, "seed": 1},),
        "limits": Limits(compile_s=60, test_s=60),
    }
    return JobConfig(**fields | changes)


@pytest.fixture(scope="module")
def cloud(tmp_path_factory):
    """A fake whose calls really run; deployed once by the real client."""
    tools = tmp_path_factory.mktemp("tools")
    (tools / "python3").symlink_to(sys.executable)
    made = FakeModal(
        tmp_path_factory.mktemp("cloud"), container_path=f"{tools}:{os.environ['PATH']}"
    )
    done = deploy(made)
    assert done.returncode == 0, done.stdout + done.stderr
    yield made
    made.close()


@pytest.fixture
def run(cloud, wait, modal_settings, monkeypatch):
    """Start a job and wait for its envelope, or for its fault."""
    for name, value in cloud.environment().items():
        monkeypatch.setenv(name, value)
    runner = ModalRunner()

    async def run_job(config: JobConfig) -> Finished:
        call_id = await runner.start("L4", config)
        async with asyncio.timeout(120):
            while not isinstance(news := await runner.poll(call_id), Finished):
                pass
        return news

    yield lambda config: envelope.read(wait(run_job(config)).envelope)
    wait(runner.client.close())


def test_a_job_runs_in_the_real_runtime_and_its_verdict_comes_back(run):
    came_back = run(make_job("def custom_kernel(x):\n    return x + 1\n"))

    outcome = came_back.outcome
    assert (outcome.job_id, outcome.attempt, outcome.failure) == ("job-7", 2, None)
    assert outcome.runs["test"].run.passed
    assert came_back.header.versions["build"] == build_id()


def test_an_exception_of_the_submission_comes_back_as_text(run, cloud, capfd):
    """FR-25: its class never leaves the container."""
    outcome = run(
        make_job(
            "class Boom(Exception):\n"
            "    def __reduce__(self):\n"
            "        return print, ('owned',)\n"
            "def custom_kernel(x):\n"
            "    raise Boom('text that the user should see')\n"
        )
    ).outcome

    assert "text that the user should see" in outcome.runs["test"].run.stderr
    assert outcome.runs["test"].failure.kind is FailureKind.EVALUATOR_CRASHED
    assert "owned" not in capfd.readouterr().out


def test_a_crash_of_the_submission_is_an_ordinary_result(run):
    outcome = run(
        make_job("import os, signal\ndef custom_kernel(x):\n    os.kill(os.getpid(), 11)\n")
    ).outcome

    assert outcome.failure is None
    assert outcome.runs["test"].failure.kind is FailureKind.EVALUATOR_CRASHED


def test_a_schema_that_the_deployed_side_does_not_speak_is_said(run):
    """FR-24: server and GPU side of different releases."""
    outcome = run(make_job("pass", schema=99)).outcome

    assert outcome.failure.kind is FailureKind.BAD_CONFIG
    assert "schema 99 was sent, this side speaks 1" in outcome.failure.message


def test_the_submission_sees_no_variable_of_the_provider(run):
    outcome = run(
        make_job(
            "import os\n"
            "def custom_kernel(x):\n"
            "    print([n for n in os.environ if n.startswith('MODAL')])\n"
            "    return x + 1\n"
        )
    ).outcome

    assert outcome.runs["test"].run.stdout.strip().startswith("[]")


def test_cancelling_ends_the_container_and_all_it_started(cloud, wait, modal_settings, monkeypatch):
    for name, value in cloud.environment().items():
        monkeypatch.setenv(name, value)
    runner = ModalRunner()
    mark = f"mark-{os.getpid()}-{time.time_ns()}"
    sleeper = f"import time\ndef custom_kernel(x):\n    '{mark}'\n    time.sleep(600)\n"
    call_id = wait(runner.start("L4", make_job(sleeper)))
    cloud.wait_for(
        lambda state: any(c["id"] == call_id and c["started_at"] for c in state["calls"])
    )
    folder = cloud.state_dir / "containers" / call_id
    _until(lambda: _processes_below(folder))

    wait(runner.cancel(call_id))

    _until(lambda: not _processes_below(folder))
    wait(runner.client.close())


def test_memory_beyond_the_submissions_share_ends_the_submission_not_the_container():
    """The watch of `runners.gpu.container`, with a share that a test machine can fill."""
    from runners.gpu import wire
    from runners.gpu.container import run_config

    hog = "def custom_kernel(x):\n    held = []\n    while True:\n        held.append(bytearray(2**24))\n"
    config = make_job(hog)

    began = time.monotonic()
    content = run_config(wire.dumps(config), memory_bytes=400 * 2**20, limit_s=60)

    assert time.monotonic() - began < 50
    assert b"out_of_memory" in content
    assert b"more memory than it is given" in content


def test_a_job_beyond_every_limit_still_leaves_a_result():
    from runners.gpu import wire
    from runners.gpu.container import run_config

    sleeper = make_job("import time\ndef custom_kernel(x):\n    time.sleep(600)\n")

    content = run_config(wire.dumps(sleeper), memory_bytes=2**40, limit_s=2)

    assert b"gpu_side_crashed" in content
    assert b"job-7" in content


def _processes_below(folder: Path) -> list[int]:
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if str(folder) in os.readlink(entry / "cwd"):
                found.append(int(entry.name))
        except OSError:
            continue
    return found


def _until(condition) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)
