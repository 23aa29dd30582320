"""What the dispatcher relies on, the same for every runner."""

from __future__ import annotations

import asyncio
import os
import time
import uuid
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from runners.backends import make_runner
from runners.backends.base import RUN_LOST, Finished, Pending
from runners.backends.fake_plan import Plan
from runners.exceptions import RunnerFault
from runners.gpu import envelope
from runners.gpu.contract import JobConfig, Mode
from runners.registry import GpuType
from tests.fake_modal.server import TOKEN, FakeModal
from tests.modal.conftest import DEPLOYMENT
from tests.modal.test_deploy import deploy
from tests.synthetic_reports import write_demo_archive

EVALUATOR = """
import os, sys, time
import submission
submission.work()
with os.fdopen(int(os.environ["POPCORN_FD"]), "w") as out:
    out.write("benchmark-count: 1\\nbenchmark.0.spec: size: 8\\nbenchmark.0.runs: 1\\n")
    out.write("benchmark.0.mean: 1\\ntest-count: 1\\ntest.0.status: pass\\ntest.0.spec: size: 8\\ncheck: pass\\n")
"""
# The functions at Modal have the names of GPUs; the other runners take any.
GPU = "L4"
QUICK, ENDLESS = "def work(): pass\n", "import time\ndef work(): time.sleep(600)\n"


def config_of(runner_name: str, submission: str = QUICK) -> JobConfig:
    return JobConfig(
        job_id=str(uuid.uuid4()),
        attempt=1,
        mode=Mode.TEST if runner_name in ("local", "modal") else Mode.PROFILE,
        lang="py",
        main="eval.py",
        sources={"eval.py": EVALUATOR, "submission.py": submission},
        tests=({"size": 8},),
        benchmarks=({"size": 8}, {"size": 16}),
        selected=(0, 1),
    )


@pytest.fixture(scope="module")
def cloud(tmp_path_factory):
    """A Modal whose calls run in its real container runtime, with our functions deployed."""
    made = FakeModal(tmp_path_factory.mktemp("cloud"), container_path=os.environ["PATH"])
    done = deploy(made)
    assert done.returncode == 0, done.stderr
    yield made
    made.close()


@pytest.fixture
def at_modal(request, settings, monkeypatch):
    """Settings and environment of a dispatcher that is pointed at that Modal."""
    for variable, value in request.getfixturevalue("cloud").environment().items():
        monkeypatch.setenv(variable, value)
    monkeypatch.setattr("runners.backends.modal_runner.POLL_WAIT_S", 0.2)
    settings.MODAL_DEPLOYMENT = DEPLOYMENT
    settings.MODAL_TOKEN_ID, settings.MODAL_TOKEN_SECRET = TOKEN.values()
    settings.GPU_TYPES = {GPU: GpuType(name=GPU, runner="modal", sm="89", max_in_flight=4)}


@pytest.fixture(params=["fake", "local", "recorded", "modal"])
def name(request, settings, tmp_path):
    settings.DATA_DIR = tmp_path
    settings.FAKE_RUNNER_DIR = tmp_path / "fake"
    settings.RECORDED_ARCHIVE = tmp_path / "capture.zip"
    write_demo_archive(settings.RECORDED_ARCHIVE)
    if request.param == "modal":
        request.getfixturevalue("at_modal")
    return request.param


@pytest.fixture
def run():
    with asyncio.Runner() as loop:
        yield loop.run


@pytest.fixture
def make(name, run):
    """Makes the runner, as each process that begins does."""
    made = []

    def one():
        made.append(make_runner(name))
        return made[-1]

    yield one
    if name == "modal":
        for runner in made:
            run(runner.client.close())


@pytest.fixture
def runner(make):
    return make()


def wait_for_end(run, runner, external_id) -> tuple[Finished, list[str]]:
    phases, deadline = [], time.monotonic() + 120
    while time.monotonic() < deadline:
        news = run(runner.poll(external_id))
        if isinstance(news, Finished):
            return news, phases
        phases.append(news.phase)
        time.sleep(0.05)
    raise AssertionError(f"no end in sight: {phases}")


def start_endless(run, runner, config) -> str:
    """A run that has not ended when the test looks at it."""
    if runner.name == "fake":
        runner.plan(Plan(run_s=600))
    external_id = run(runner.start(GPU, config))
    assert isinstance(run(runner.poll(external_id)), Pending)
    return external_id


def test_a_run_comes_back_as_an_envelope_of_its_own_job(run, make, runner, name):
    config = config_of(name)
    external_id = run(runner.start(GPU, config))

    finished, _ = wait_for_end(run, runner, external_id)

    outcome = envelope.read(finished.envelope).outcome
    assert (outcome.job_id, outcome.attempt, outcome.failure) == (config.job_id, 1, None)
    assert all(record.run.passed for record in outcome.runs.values()), outcome
    run(runner.release(external_id))


def test_a_run_is_found_again_by_its_id_from_another_process(run, make, runner, name):
    """FR-30."""
    config = config_of(name)
    external_id = run(runner.start(GPU, config))
    assert 0 < len(external_id) <= 200

    finished, _ = wait_for_end(run, make(), external_id)
    again = run(make().poll(external_id))

    assert envelope.read(again.envelope).outcome.job_id == config.job_id
    assert again == finished
    run(runner.release(external_id))


def test_a_cancelled_run_never_finishes_and_may_be_cancelled_twice(run, make, runner, name):
    external_id = start_endless(run, runner, config_of(name, ENDLESS))

    run(runner.cancel(external_id))
    run(make().cancel(external_id))

    with pytest.raises(RunnerFault):
        run(runner.poll(external_id))
    run(runner.release(external_id))


def test_ending_what_is_not_known_is_no_error(run, make, runner, name):
    unknown = f"{uuid.uuid4()}-1"

    run(runner.cancel(unknown))
    run(runner.release(unknown))

    with pytest.raises(RunnerFault) as raised:
        run(runner.poll(unknown))
    # What Modal does not know any more has ended there, and may be run again.
    kind = RUN_LOST if name == "modal" else "run_unknown"
    assert (raised.value.kind, raised.value.retryable) == (kind, False)


def test_runs_that_nobody_may_know_are_listed(run, make, runner, name):
    """FR-30: between the start and the saving of its id."""
    before = datetime.now(UTC) - timedelta(seconds=1)
    external_id = start_endless(run, runner, config_of(name, ENDLESS))

    [known] = run(make().unclaimed(before))
    assert known.external_id == external_id
    assert before < known.started_at <= datetime.now(UTC)
    assert run(runner.unclaimed(datetime.now(UTC) + timedelta(seconds=1))) == []

    run(runner.cancel(external_id))
    run(runner.release(external_id))
    assert run(runner.unclaimed(before)) == []


def test_attempts_of_a_job_are_runs_of_their_own(run, make, runner, name):
    config = config_of(name)
    first = run(runner.start(GPU, config))
    second = run(runner.start(GPU, replace(config, attempt=2)))

    assert first != second
    for external_id, attempt in ((first, 1), (second, 2)):
        finished, _ = wait_for_end(run, runner, external_id)
        assert envelope.read(finished.envelope).outcome.attempt == attempt
        run(runner.release(external_id))
