from __future__ import annotations

import time

import pytest

from runners.artifacts import open_artifact
from runners.backends.fake_plan import Plan, PlannedFault
from runners.models import Job
from runners.states import JobStatus
from runners.transitions import move

S = JobStatus


def test_a_job_goes_from_the_queue_to_its_end(dispatcher, add_job, fake):
    job = add_job()

    dispatcher.until(job, S.SUCCEEDED)
    dispatcher.step()

    assert list(job.events.values_list("to_status", flat=True)) == [
        "queued", "starting", "running", "collecting", "succeeded",
    ]  # fmt: skip
    assert sorted(job.artifacts.values_list("name", flat=True)) == [
        "profile.0.zip",
        "profile.1.zip",
    ]
    with open_artifact(job.artifacts.first()) as stored:
        assert stored.read(2) == b"PK"
    job.refresh_from_db()
    assert not job.stop_due
    assert [len(fake.calls(event)) for event in ("started", "cancelled", "released")] == [1, 0, 1]


def test_progress_is_kept_while_it_runs(dispatcher, add_job, fake):
    fake.plan(Plan(run_s=3600, phases=("compiling", "capturing")))
    job = add_job()

    dispatcher.step(2)

    job.refresh_from_db()
    assert (job.status, job.phase) == (S.RUNNING, "compiling")


def test_a_run_that_never_ends_is_stopped_at_the_wall(dispatcher, add_job, fake, settings):
    """FR-24, first variant."""
    fake.plan(Plan(run_s=3600))
    job = add_job()
    dispatcher.until(job, S.RUNNING)

    settings.RUN_WALL_S = 0
    dispatcher.until(job, S.TIMED_OUT)
    dispatcher.step()

    assert job.failure_kind == "run_wall"
    assert "Send it again" in job.failure_message
    assert len(fake.calls("cancelled", job.pk)) == 1


@pytest.mark.parametrize(
    "kind", ["provider_timeout", "result_expired", "run_unknown", "function_mismatch"]
)
def test_what_the_provider_says_is_the_end_fails_with_its_own_kind(dispatcher, add_job, fake, kind):
    """FR-24: nothing is retried that may still be running."""
    fake.plan(Plan(poll_faults=(PlannedFault(kind=kind, message=f"why: {kind}", times=99),)))
    job = add_job()

    dispatcher.until(job, S.FAILED)

    assert (job.failure_kind, job.failure_message) == (kind, f"why: {kind}")
    assert len(fake.calls("started", job.pk)) == 1


def test_connection_errors_for_a_while_do_no_harm(dispatcher, add_job, fake):
    """FR-24, sixth variant."""
    fault = PlannedFault(kind="provider_unreachable", retryable=True, times=9)
    fake.plan(Plan(poll_faults=(fault,)))
    job = add_job()

    dispatcher.until(job, S.SUCCEEDED)

    assert len(fake.calls("started", job.pk)) == 1


def test_patience_begins_anew_when_the_provider_answered(dispatcher, add_job, fake, settings):
    fault = PlannedFault(kind="provider_unreachable", retryable=True, times=3)
    fake.plan(Plan(run_s=3600, poll_faults=(fault,)))
    job = dispatcher.until(add_job(), S.RUNNING)
    dispatcher.step()
    fake.plan(Plan(run_s=3600))
    dispatcher.step()
    time.sleep(0.2)

    settings.POLL_PATIENCE_S = 0.1
    fake.plan(Plan(run_s=3600, poll_faults=(fault,)))
    dispatcher.step()

    assert Job.objects.get(pk=job.pk).status == S.RUNNING


def test_connection_errors_that_last_end_the_job_and_stop_its_run(
    dispatcher, add_job, fake, settings
):
    settings.POLL_PATIENCE_S = 0
    fault = PlannedFault(kind="provider_unreachable", retryable=True, times=9)
    fake.plan(Plan(poll_faults=(fault,)))
    job = add_job()

    dispatcher.until(job, S.FAILED)
    dispatcher.step()

    assert job.failure_kind == "provider_unreachable"
    assert len(fake.calls("cancelled", job.pk)) == 1
    assert len(fake.calls("started", job.pk)) == 1


def test_a_run_that_is_lost_is_begun_again_once(dispatcher, add_job, fake):
    fake.plan(Plan(poll_faults=(PlannedFault(kind="run_lost", retryable=True, times=9),)))
    job = add_job()

    dispatcher.until(job, S.FAILED)

    assert (job.failure_kind, job.attempt) == ("run_lost", 2)
    first, second = fake.calls("started", job.pk)
    released = {call["external_id"]: call["at"] for call in fake.calls("released")}
    assert released[first["external_id"]] < second["at"]
    assert fake.alive() == []


def test_a_job_that_is_cancelled_while_it_runs_is_stopped(dispatcher, add_job, fake):
    fake.plan(Plan(run_s=3600))
    job = dispatcher.until(add_job(), S.RUNNING)

    move(job, S.CANCELLED, actor_label="alice")
    dispatcher.step()

    job.refresh_from_db()
    assert (job.status, job.stop_due) == (S.CANCELLED, False)
    assert fake.alive() == []
    assert dispatcher.dispatcher.flights == {}


def test_a_stop_that_fails_is_tried_again(dispatcher, add_job, fake, monkeypatch):
    monkeypatch.setattr("runners.dispatcher.loop.STOP_AGAIN_S", 0)
    fake.plan(Plan(run_s=3600))
    job = dispatcher.until(add_job(), S.RUNNING)
    move(job, S.CANCELLED, actor_label="alice")
    (fake.root / "calls.jsonl").chmod(0o600)
    release = type(fake).release
    monkeypatch.setattr(type(fake), "release", None)
    dispatcher.step()
    assert Job.objects.get(pk=job.pk).stop_due

    monkeypatch.setattr(type(fake), "release", release)
    dispatcher.step()

    assert not Job.objects.get(pk=job.pk).stop_due
