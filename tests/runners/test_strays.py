"""Runs that no row names, where several dispatchers look for them (FR-30)."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest
from asgiref.sync import async_to_sync, sync_to_async
from django.utils import timezone

from runners.backends.fake_plan import Plan
from runners.dispatcher.turns import end_turn, take_turn
from runners.models import DispatcherTurn, Job
from runners.states import JobStatus
from tests.runners.conftest import Steps

S = JobStatus
NAME = "strays of fake"


@pytest.fixture
def stray(dispatcher, add_job, fake, settings):
    """The id of a run that no row names, old enough to be ended."""
    fake.plan(Plan(run_s=3600, cancel_s=0.3))
    job = dispatcher.until(add_job(), S.RUNNING)
    Job.objects.filter(pk=job.pk).update(
        status=S.CANCELLED, finished_at=timezone.now(), external_id="", lease_until=None
    )
    settings.START_LIMIT_S = settings.START_MARGIN_S = 0
    return job


def test_of_dispatchers_that_look_at_once_one_ends_a_stray(dispatcher, stray, fake):
    async def both():
        await asyncio.gather(*(each.dispatcher.sweep() for each in (dispatcher, Steps("two"))))

    async_to_sync(both)()

    assert fake.alive() == []
    assert len(fake.calls("cancelled", stray.pk)) == 1


def test_while_another_dispatcher_is_at_it_strays_are_left_to_it(dispatcher, stray, fake):
    take_turn(NAME, "another", 60)
    async_to_sync(dispatcher.dispatcher.sweep)()
    assert len(fake.alive()) == 1

    end_turn(NAME, "another")
    async_to_sync(dispatcher.dispatcher.sweep)()
    assert fake.alive() == []


def test_a_dispatcher_that_slept_through_its_turn_ends_nothing(
    dispatcher, stray, fake, monkeypatch
):
    look = type(fake).unclaimed

    async def sleep_then_look(self, since):
        await sync_to_async(DispatcherTurn.objects.update)(token="another")
        return await look(self, since)

    monkeypatch.setattr(type(fake), "unclaimed", sleep_then_look)

    async_to_sync(dispatcher.dispatcher.sweep)()

    assert len(fake.alive()) == 1
    assert DispatcherTurn.objects.get(name=NAME).token == "another"


def test_a_dispatcher_that_died_at_it_keeps_the_others_away_for_its_lease_only(
    dispatcher, stray, fake
):
    take_turn(NAME, "dead", 60)
    DispatcherTurn.objects.update(until=timezone.now() - timedelta(seconds=1))

    async_to_sync(dispatcher.dispatcher.sweep)()

    assert fake.alive() == []
    assert not DispatcherTurn.objects.filter(until__gt=timezone.now()).exists()


def test_a_start_is_not_repeated_while_another_dispatcher_may_be_ending_its_run(
    dispatcher, add_job, fake, settings
):
    """Only who looked for strays after the start may begin again."""
    settings.START_LIMIT_S = settings.START_MARGIN_S = 0
    job = add_job()
    async_to_sync(dispatcher.dispatcher.claim)()
    [flight] = dispatcher.dispatcher.flights.values()
    flight.fresh = False
    take_turn(NAME, "another", 60)

    async_to_sync(dispatcher.dispatcher.advance)(flight)
    job.refresh_from_db()
    assert (job.status, job.attempt) == (S.STARTING, 1)

    end_turn(NAME, "another")
    async_to_sync(dispatcher.dispatcher.advance)(flight)
    job.refresh_from_db()
    assert (job.status, job.attempt) == (S.QUEUED, 2)


def test_a_turn_that_was_lost_is_not_ended_for_the_one_who_has_it(db):
    assert take_turn(NAME, "slow", 0)
    assert take_turn(NAME, "next", 60)

    end_turn(NAME, "slow")

    assert not take_turn(NAME, "slow", 60)
    assert take_turn(NAME, "next", 60)
