"""What rarely happens to a dispatcher: runners that break, results that lie, rows that were changed."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from asgiref.sync import async_to_sync

from runners.backends.fake_plan import Plan, write_envelope
from runners.exceptions import RunnerFault
from runners.gpu import envelope
from runners.models import Job
from runners.states import JobStatus
from runners.transitions import move

S = JobStatus


def raising(error):
    async def call(*of, **named):
        raise error

    return call


def test_a_runner_that_breaks_while_it_is_asked_is_asked_again(
    dispatcher, add_job, fake, monkeypatch
):
    job = dispatcher.until(add_job(), S.RUNNING)
    with monkeypatch.context() as patched:
        patched.setattr(type(fake), "poll", raising(ValueError("a mistake of ours")))
        dispatcher.step()
        [flight] = dispatcher.dispatcher.flights.values()
        assert flight.faults == 1

    dispatcher.until(job, S.SUCCEEDED)


def test_a_runner_that_does_not_answer_is_asked_again(dispatcher, add_job, fake, monkeypatch):
    job = dispatcher.until(add_job(), S.RUNNING)
    monkeypatch.setattr("runners.dispatcher.poll.POLL_LIMIT_S", 0.05)
    with monkeypatch.context() as patched:
        patched.setattr(type(fake), "poll", lambda *of: asyncio.sleep(600))
        dispatcher.step()
        [flight] = dispatcher.dispatcher.flights.values()
        assert flight.faults == 1
    monkeypatch.setattr("runners.dispatcher.poll.POLL_LIMIT_S", 60)

    dispatcher.until(job, S.SUCCEEDED)


def test_a_runner_that_breaks_at_the_start_may_have_started_something(
    dispatcher, add_job, fake, monkeypatch
):
    """FR-30."""
    job = add_job()
    with monkeypatch.context() as patched:
        patched.setattr(type(fake), "start", raising(ValueError("a mistake of ours")))
        dispatcher.step()
    assert Job.objects.get(pk=job.pk).status == S.STARTING

    dispatcher.until(job, S.SUCCEEDED, steps=200)

    assert job.attempt == 2


def test_a_config_that_cannot_be_had_ends_the_job_with_its_reason(
    dispatcher, add_job, handler, monkeypatch
):
    def build_config(job):
        raise RunnerFault("Its task is gone.", kind="no_task", retryable=False)

    monkeypatch.setattr(handler, "build_config", build_config)

    job = dispatcher.until(add_job(), S.FAILED)

    assert (job.failure_kind, job.failure_message) == ("no_task", "Its task is gone.")


def test_a_job_of_a_runner_that_is_no_longer_there_fails_as_ours(dispatcher, add_job):
    job = add_job()
    Job.objects.update(runner="gone")

    dispatcher.until(job, S.FAILED)

    assert job.failure_kind == "no_runner"


def test_an_end_that_did_not_get_through_is_not_tried_at_every_turn(
    dispatcher, add_job, fake, monkeypatch
):
    fake.plan(Plan(run_s=3600))
    job = dispatcher.until(add_job(), S.RUNNING)
    move(job, S.CANCELLED, actor_label="alice")
    tries = []

    async def cancel(self, external_id):
        tries.append(external_id)
        raise RunnerFault("away", kind="away", retryable=True)

    monkeypatch.setattr(type(fake), "cancel", cancel)
    dispatcher.step(3)

    assert len(tries) == 1
    assert Job.objects.get(pk=job.pk).stop_due


def test_strays_of_a_runner_that_is_away_are_left_for_the_next_sweep(
    dispatcher, fake, monkeypatch, caplog
):
    fault = RunnerFault("away", kind="away", retryable=True)
    monkeypatch.setattr(type(fake), "unclaimed", raising(fault))

    async_to_sync(dispatcher.dispatcher.sweep)()

    assert "the strays of fake are not ended" in caplog.text


@pytest.fixture
def answer(dispatcher, add_job, fake, tmp_path):
    """The end of a job whose good result was changed by `change(outcome)`."""

    def run(change):
        fake.plan(Plan(run_s=3600))
        job = dispatcher.until(add_job(), S.RUNNING)
        good, target = tmp_path / "good", tmp_path / "changed"
        write_envelope(good, fake.config_of(job.external_id), Plan())
        read = envelope.read(good)
        archives = {}
        for part in read.header.parts[1:]:
            archives[part.name] = tmp_path / f"{len(archives)}.zip"
            read.extract(part.name, archives[part.name])
        envelope.write(target, change(read.outcome), archives)
        fake.plan(Plan(envelope=str(target)), job_id=job.pk)
        return dispatcher.until(job, S.FAILED, S.SUCCEEDED)

    return run


def test_a_run_of_a_name_that_we_never_gave_is_refused(answer):
    """FR-25: names become names of files."""

    def change(outcome):
        [(_, record), *_] = outcome.runs.items()
        return replace(outcome, runs=outcome.runs | {"../../profile.7": record})

    job = answer(change)

    assert job.failure_kind == "bad_envelope"
    assert not job.artifacts.filter(name__contains="..").exists()


def test_an_archive_that_is_not_the_one_that_was_told_of_is_refused(answer):
    """FR-32."""

    def change(outcome):
        runs = {
            key: replace(record, capture=replace(record.capture, archive_sha256="0" * 64))
            for key, record in outcome.runs.items()
        }
        return replace(outcome, runs=runs)

    assert answer(change).failure_kind == "bad_envelope"


def test_a_run_without_a_capture_stores_nothing(answer):
    def change(outcome):
        return replace(
            outcome, runs={key: replace(run, capture=None) for key, run in outcome.runs.items()}
        )

    assert not answer(change).artifacts.exists()
