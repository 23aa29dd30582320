"""What rarely happens at the end of a step: somebody else was faster, or the database was away."""

from __future__ import annotations

from datetime import timedelta

import pytest
from asgiref.sync import async_to_sync
from django.db import OperationalError
from django.utils import timezone

from runners.backends.base import RUN_LOST
from runners.backends.fake_plan import Plan, PlannedFault
from runners.dispatcher import reap
from runners.dispatcher.flight import Flight
from runners.exceptions import RunnerFault
from runners.gpu.envelope import EnvelopeError
from runners.models import Job
from runners.states import JobStatus
from runners.transitions import move
from tests.runners.test_rare_turns import raising

S = JobStatus
AWAY = OperationalError("the database is away")


def flight_of(dispatcher) -> Flight:
    [flight] = dispatcher.dispatcher.flights.values()
    return flight


def test_a_phase_that_cannot_be_saved_is_only_tried_again(dispatcher, add_job, fake, monkeypatch):
    fake.plan(Plan(run_s=0.2))
    job = dispatcher.until(add_job(), S.RUNNING)

    def away(*of):
        raise AWAY

    with monkeypatch.context() as patched:
        patched.setattr("runners.dispatcher.poll._save_phase", away)
        dispatcher.step()
        assert flight_of(dispatcher).faults == 1

    dispatcher.until(job, S.SUCCEEDED, steps=200)


def test_a_run_whose_id_could_not_be_saved_is_ended_and_begun_again(
    dispatcher, add_job, fake, monkeypatch
):
    """FR-30."""
    fake.plan(Plan(run_s=3600))
    job = add_job()
    with monkeypatch.context() as patched:
        patched.setattr(Flight, "move", raising(AWAY))
        dispatcher.step()
    assert Job.objects.get(pk=job.pk).status == S.STARTING
    assert fake.alive() == []

    fake.plan(Plan())
    dispatcher.until(job, S.SUCCEEDED, steps=200)
    assert job.attempt == 2


@pytest.mark.parametrize(
    "error", [TimeoutError(), RunnerFault("away", kind="away", retryable=True)]
)
def test_a_start_is_not_repeated_while_the_runner_cannot_say_what_runs(
    dispatcher, add_job, fake, monkeypatch, error
):
    job = add_job()
    with monkeypatch.context() as patched:
        patched.setattr(type(fake), "start", raising(ValueError("a mistake of ours")))
        dispatcher.step()
    with monkeypatch.context() as patched:
        patched.setattr(type(fake), "unclaimed", raising(error))
        for _ in range(40):
            dispatcher.step()
            Job.objects.update(starting_at=timezone.now() - timedelta(minutes=5))
        job.refresh_from_db()
        assert (job.status, job.attempt) == (S.STARTING, 1)

    dispatcher.until(job, S.SUCCEEDED, steps=200)


def test_a_start_in_the_future_is_looked_for_from_now(dispatcher, add_job, fake, monkeypatch):
    """The clock was set back between the start and its recovery."""
    job = add_job()
    with monkeypatch.context() as patched:
        patched.setattr(type(fake), "start", raising(ValueError("a mistake of ours")))
        dispatcher.step()
    flight_of(dispatcher).job.starting_at = timezone.now() + timedelta(hours=1)

    dispatcher.until(job, S.SUCCEEDED, steps=400)

    assert job.attempt == 2


def test_a_job_that_we_took_over_from_ourselves_is_carried_once(dispatcher, add_job, fake):
    fake.plan(Plan(run_s=3600))
    job = dispatcher.until(add_job(), S.RUNNING)
    flight = flight_of(dispatcher)
    Job.objects.update(lease_until=timezone.now() - timedelta(seconds=1))

    async_to_sync(dispatcher.dispatcher.take_over)()

    assert flight_of(dispatcher) is flight
    job.refresh_from_db()
    assert job.lease_until > timezone.now()


def test_a_job_that_was_lost_while_it_starts_is_left_to_its_start(dispatcher, add_job, fake):
    """Cutting it off there would lose the run's id."""
    fake.plan(Plan(run_s=3600))
    job = dispatcher.until(add_job(), S.RUNNING)
    flight = flight_of(dispatcher)
    flight.starting = True
    move(job, S.CANCELLED, actor_label="alice")

    async_to_sync(dispatcher.dispatcher.hold_on)()
    assert flight_of(dispatcher) is flight

    flight.starting = False
    async_to_sync(dispatcher.dispatcher.hold_on)()
    assert dispatcher.dispatcher.flights == {}


def test_what_cannot_be_let_go_of_is_said_in_the_log(
    dispatcher, add_job, fake, monkeypatch, caplog
):
    fake.plan(Plan(run_s=3600))
    job = dispatcher.until(add_job(), S.RUNNING)
    move(job, S.CANCELLED, actor_label="alice")
    Job.objects.update(stop_due=False)  # another dispatcher has ended its run
    monkeypatch.setattr(type(fake), "release", raising(OSError("a sick disk")))

    async_to_sync(dispatcher.dispatcher.hold_on)()

    assert dispatcher.dispatcher.flights == {}
    assert "is not let go of" in caplog.text


def test_a_lost_run_is_begun_again_even_if_it_cannot_be_ended(
    dispatcher, add_job, fake, monkeypatch, caplog
):
    fake.plan(Plan(poll_faults=(PlannedFault(kind=RUN_LOST),)))
    job = dispatcher.until(add_job(), S.RUNNING)
    with monkeypatch.context() as patched:
        patched.setattr(type(fake), "cancel", raising(OSError("no answer")))
        dispatcher.step()
    assert "could not be ended" in caplog.text

    fake.plan(Plan())
    dispatcher.until(job, S.SUCCEEDED)
    assert job.attempt == 2


def test_a_result_that_vanishes_while_it_is_read_is_our_failure(dispatcher, add_job, monkeypatch):
    def read(path):
        path.unlink()
        raise EnvelopeError("it is gone")

    monkeypatch.setattr("runners.gpu.envelope.read", read)

    job = dispatcher.until(add_job(), S.FAILED)

    assert job.failure_kind == "bad_envelope"


@pytest.fixture
def waited_too_long(add_job, settings):
    settings.QUEUE_LIMIT_S = 60
    job = add_job()
    Job.objects.update(queued_at=timezone.now() - timedelta(minutes=5))
    return job


def test_a_job_that_is_cancelled_as_its_time_runs_out_is_cancelled(
    dispatcher, waited_too_long, monkeypatch
):
    def cancelled_before(job, *of, **named):
        move(Job.objects.get(pk=job.pk), S.CANCELLED, actor_label="alice")
        return move(job, *of, **named)

    monkeypatch.setattr(reap, "move", cancelled_before)

    reap.time_out_queue("one")

    waited_too_long.refresh_from_db()
    assert waited_too_long.status == S.CANCELLED


def test_a_job_that_cannot_be_timed_out_is_tried_again_later(
    dispatcher, waited_too_long, handler, settings, monkeypatch
):
    settings.POISON_DELAY_S = 60

    def stumble(job, event):
        raise ValueError("a mistake of ours")

    with monkeypatch.context() as patched:
        patched.setattr(handler, "moved", stumble)
        reap.time_out_queue("one")
    waited_too_long.refresh_from_db()
    assert waited_too_long.status == S.QUEUED
    assert waited_too_long.not_before > timezone.now()

    Job.objects.update(not_before=timezone.now())
    reap.time_out_queue("one")
    waited_too_long.refresh_from_db()
    assert waited_too_long.status == S.TIMED_OUT
