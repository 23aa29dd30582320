"""What the dispatcher relies on, the same for every runner."""

from __future__ import annotations

import asyncio
import time
import uuid
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from runners.backends import make_runner
from runners.backends.base import Finished, Pending
from runners.backends.fake_plan import Plan
from runners.exceptions import RunnerFault
from runners.gpu import envelope
from runners.gpu.contract import JobConfig, Mode
from tests.synthetic_reports import write_demo_archive

EVALUATOR = """
import os, sys, time
import submission
submission.work()
with os.fdopen(int(os.environ["POPCORN_FD"]), "w") as out:
    out.write("benchmark-count: 1\\nbenchmark.0.spec: size: 8\\nbenchmark.0.runs: 1\\n")
    out.write("benchmark.0.mean: 1\\ntest-count: 1\\ntest.0.status: pass\\ntest.0.spec: size: 8\\ncheck: pass\\n")
"""
QUICK, ENDLESS = "def work(): pass\n", "import time\ndef work(): time.sleep(600)\n"


def config_of(runner_name: str, submission: str = QUICK) -> JobConfig:
    return JobConfig(
        job_id=str(uuid.uuid4()),
        attempt=1,
        mode=Mode.TEST if runner_name == "local" else Mode.PROFILE,
        lang="py",
        main="eval.py",
        sources={"eval.py": EVALUATOR, "submission.py": submission},
        tests=({"size": 8},),
        benchmarks=({"size": 8}, {"size": 16}),
        selected=(0, 1),
    )


@pytest.fixture(params=["fake", "local", "recorded"])
def name(request, settings, tmp_path):
    settings.DATA_DIR = tmp_path
    settings.FAKE_RUNNER_DIR = tmp_path / "fake"
    settings.RECORDED_ARCHIVE = tmp_path / "capture.zip"
    write_demo_archive(settings.RECORDED_ARCHIVE)
    return request.param


@pytest.fixture
def runner(name):
    return make_runner(name)


def run(coroutine):
    return asyncio.run(coroutine)


def wait_for_end(runner, external_id) -> tuple[Finished, list[str]]:
    phases, deadline = [], time.monotonic() + 120
    while time.monotonic() < deadline:
        news = run(runner.poll(external_id))
        if isinstance(news, Finished):
            return news, phases
        phases.append(news.phase)
        time.sleep(0.05)
    raise AssertionError(f"no end in sight: {phases}")


def start_endless(runner, config) -> str:
    """A run that has not ended when the test looks at it."""
    if runner.name == "fake":
        runner.plan(Plan(run_s=600))
    external_id = run(runner.start("CPU", config))
    assert isinstance(run(runner.poll(external_id)), Pending)
    return external_id


def test_a_run_comes_back_as_an_envelope_of_its_own_job(runner, name):
    config = config_of(name)
    external_id = run(runner.start("CPU", config))

    finished, _ = wait_for_end(runner, external_id)

    outcome = envelope.read(finished.envelope).outcome
    assert (outcome.job_id, outcome.attempt, outcome.failure) == (config.job_id, 1, None)
    assert all(record.run.passed for record in outcome.runs.values()), outcome
    run(runner.release(external_id))


def test_a_run_is_found_again_by_its_id_from_another_process(runner, name):
    """FR-30."""
    config = config_of(name)
    external_id = run(runner.start("CPU", config))
    assert 0 < len(external_id) <= 200

    finished, _ = wait_for_end(make_runner(name), external_id)
    again = run(make_runner(name).poll(external_id))

    assert envelope.read(again.envelope).outcome.job_id == config.job_id
    assert again == finished
    run(runner.release(external_id))


def test_a_cancelled_run_never_finishes_and_may_be_cancelled_twice(runner, name):
    external_id = start_endless(runner, config_of(name, ENDLESS))

    run(runner.cancel(external_id))
    run(make_runner(name).cancel(external_id))

    with pytest.raises(RunnerFault):
        run(runner.poll(external_id))
    run(runner.release(external_id))


def test_ending_what_is_not_known_is_no_error(runner, name):
    unknown = f"{uuid.uuid4()}-1"

    run(runner.cancel(unknown))
    run(runner.release(unknown))

    with pytest.raises(RunnerFault) as raised:
        run(runner.poll(unknown))
    assert (raised.value.kind, raised.value.retryable) == ("run_unknown", False)


def test_runs_that_nobody_may_know_are_listed(runner, name):
    """FR-30: between the start and the saving of its id."""
    before = datetime.now(UTC) - timedelta(seconds=1)
    external_id = start_endless(runner, config_of(name, ENDLESS))

    [known] = run(make_runner(name).unclaimed(before))
    assert known.external_id == external_id
    assert before < known.started_at <= datetime.now(UTC)
    assert run(runner.unclaimed(datetime.now(UTC) + timedelta(seconds=1))) == []

    run(runner.cancel(external_id))
    run(runner.release(external_id))
    assert run(runner.unclaimed(before)) == []


def test_attempts_of_a_job_are_runs_of_their_own(runner, name):
    config = config_of(name)
    first = run(runner.start("CPU", config))
    second = run(runner.start("CPU", replace(config, attempt=2)))

    assert first != second
    for external_id, attempt in ((first, 1), (second, 2)):
        finished, _ = wait_for_end(runner, external_id)
        assert envelope.read(finished.envelope).outcome.attempt == attempt
        run(runner.release(external_id))
