from __future__ import annotations

from datetime import timedelta

import pytest
from asgiref.sync import async_to_sync
from django.utils import timezone

from runners import handlers
from runners.backends.fake_plan import Plan, PlannedFault
from runners.dispatcher.reap import take_over
from runners.models import DispatcherHeartbeat, Job, JobQuerySet
from runners.states import FINAL, JobStatus
from tests.runners.conftest import Steps

S = JobStatus


@pytest.mark.parametrize("status", [S.RUNNING, S.COLLECTING])
def test_a_job_whose_holder_is_gone_is_taken_over_and_its_run_found_again(
    dispatcher, add_job, fake, handler, monkeypatch, status
):
    """FR-30: re-attached by its id, not started again."""
    if status == S.RUNNING:
        fake.plan(Plan(run_s=3600))
    else:
        monkeypatch.setattr(handler, "keep_results", None)
    job = dispatcher.until(add_job(), status)
    fake.plan(Plan())
    monkeypatch.undo()
    monkeypatch.setitem(handlers._handlers, "test", handler)
    other = Steps("two")
    other.step()
    assert Job.objects.get(pk=job.pk).lease_owner == "one"
    Job.objects.update(lease_until=timezone.now() - timedelta(seconds=1))

    other.until(job, S.SUCCEEDED)
    dispatcher.step(2)

    assert len(fake.calls("started", job.pk)) == 1
    assert job.events.filter(to_status__in=FINAL).count() == 1
    assert dispatcher.dispatcher.flights == {}


def test_a_result_that_was_read_when_somebody_else_holds_the_job_is_not_kept(
    dispatcher, add_job, handler, monkeypatch
):
    """FR-30: the lease ran out in the meantime."""
    kept = []
    read_results = handler.read_results

    def taken_meanwhile(job, envelope):
        Job.objects.filter(pk=job.pk).update(lease_owner="two")
        return read_results(job, envelope)

    monkeypatch.setattr(handler, "read_results", taken_meanwhile)
    monkeypatch.setattr(handler, "keep_results", lambda *of: kept.append(of))
    job = add_job()
    dispatcher.step(3)

    job.refresh_from_db()
    assert (job.status, job.lease_owner) == (S.COLLECTING, "two")
    assert dispatcher.dispatcher.flights == {}


def test_a_fault_that_was_seen_when_somebody_else_holds_the_job_does_not_end_it(
    dispatcher, add_job, fake
):
    """FR-30."""
    fake.plan(Plan(run_s=3600))
    job = dispatcher.until(add_job(), S.RUNNING)
    [flight] = dispatcher.dispatcher.flights.values()
    Job.objects.update(lease_owner="two")
    fake.plan(Plan(poll_faults=(PlannedFault(kind="provider_timeout", times=9),)))

    assert async_to_sync(dispatcher.dispatcher.advance)(flight) is None

    assert Job.objects.get(pk=job.pk).status == S.RUNNING


def test_a_lease_that_is_renewed_at_the_last_moment_is_not_taken(
    dispatcher, add_job, fake, monkeypatch
):
    fake.plan(Plan(run_s=3600))
    dispatcher.until(add_job(), S.RUNNING)
    Job.objects.update(lease_until=timezone.now() - timedelta(seconds=1))
    seen = list(Job.objects.abandoned(timezone.now()))
    monkeypatch.setattr(JobQuerySet, "abandoned", lambda self, now: seen)
    Job.objects.update(lease_until=timezone.now() + timedelta(seconds=30))

    assert take_over("two") == []


def test_a_dispatcher_that_was_stopped_for_longer_than_its_lease_starts_nothing(
    dispatcher, add_job, fake
):
    """FR-30: it was stopped between its claim and the start."""
    job = add_job()
    async_to_sync(dispatcher.dispatcher.claim)()
    [flight] = dispatcher.dispatcher.flights.values()
    flight.leased_until = timezone.now() - timedelta(seconds=1)

    assert async_to_sync(dispatcher.dispatcher.advance)(flight) is None

    assert fake.calls("started", job.pk) == []


def test_a_run_that_no_row_names_is_ended_but_never_one_that_was_started_just_now(
    dispatcher, add_job, fake, settings
):
    """FR-30: cancelled while it was started, by a dispatcher that was killed."""
    fake.plan(Plan(run_s=3600))
    known = dispatcher.until(add_job(), S.RUNNING)
    stray = dispatcher.until(add_job(), S.RUNNING)
    Job.objects.filter(pk=stray.pk).update(
        status=S.CANCELLED, finished_at=timezone.now(), external_id="", lease_until=None
    )

    settings.START_MARGIN_S = 3600
    async_to_sync(dispatcher.dispatcher.sweep)()
    assert sorted(fake.alive()) == sorted([known.external_id, stray.external_id])
    settings.START_LIMIT_S = settings.START_MARGIN_S = 0
    async_to_sync(dispatcher.dispatcher.sweep)()

    assert fake.alive() == [known.external_id]


def test_a_live_dispatcher_can_be_seen(dispatcher):
    dispatcher.step()

    beat = DispatcherHeartbeat.objects.get()
    assert beat.owner == "one"
    assert timezone.now() - beat.seen_at < timedelta(seconds=60)
