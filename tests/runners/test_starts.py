from __future__ import annotations

from datetime import timedelta

import pytest
from asgiref.sync import sync_to_async
from django.utils import timezone

from runners.backends.fake_plan import Plan, PlannedFault
from runners.models import Job
from runners.states import JobStatus
from runners.transitions import move

S = JobStatus


def test_a_start_that_fails_is_tried_again_after_a_while(dispatcher, add_job, fake, settings):
    settings.RETRY_DELAY_S = 100
    fake.plan(Plan(start_faults=(PlannedFault(kind="busy", retryable=True),)))
    job = add_job()
    dispatcher.step()
    job.refresh_from_db()
    assert (job.status, job.attempt) == (S.QUEUED, 2)
    assert job.not_before > timezone.now() + timedelta(seconds=30)

    Job.objects.update(not_before=timezone.now())
    dispatcher.until(job, S.SUCCEEDED)

    assert len(fake.calls("started", job.pk)) == 1


def test_starts_are_not_tried_for_ever(dispatcher, add_job, fake):
    fake.plan(Plan(start_faults=(PlannedFault(kind="busy", retryable=True, times=99),)))
    job = add_job()

    dispatcher.until(job, S.FAILED)

    assert (job.failure_kind, job.attempt) == ("busy", 5)


def test_a_start_that_cannot_succeed_fails_at_once(dispatcher, add_job, fake):
    fake.plan(Plan(start_faults=(PlannedFault(kind="misconfigured", message="the key"),)))
    job = add_job()

    dispatcher.until(job, S.FAILED)

    assert (job.failure_kind, job.failure_message, job.attempt) == ("misconfigured", "the key", 1)


@pytest.mark.parametrize(
    "plan",
    [
        Plan(run_s=3600, answer_s=3600),
        Plan(run_s=3600, start_faults=(PlannedFault(kind="start_unknown", after_start=True),)),
    ],
    ids=["no answer in time", "the connection broke"],
)
def test_a_start_of_unknown_outcome_is_not_run_twice_at_once(dispatcher, add_job, fake, plan):
    """FR-30: what may run is ended first."""
    fake.plan(plan)
    job = add_job()
    dispatcher.step()
    [lost] = fake.calls("started", job.pk)
    assert Job.objects.get(pk=job.pk).status == S.STARTING

    fake.plan(Plan())
    dispatcher.until(job, S.SUCCEEDED, steps=200)

    assert job.attempt == 2
    assert lost["external_id"] in [call["external_id"] for call in fake.calls("cancelled")]
    assert fake.calls("cancelled")[0]["at"] < fake.calls("started", job.pk)[1]["at"]


def test_a_job_that_is_cancelled_while_it_starts_leaves_no_run(
    dispatcher, add_job, fake, monkeypatch
):
    job = add_job()
    start = type(fake).start

    async def cancelled_meanwhile(self, gpu, config):
        external_id = await start(self, gpu, config)
        await sync_to_async(move)(
            await sync_to_async(Job.objects.get)(), S.CANCELLED, actor_label="alice"
        )
        return external_id

    monkeypatch.setattr(type(fake), "start", cancelled_meanwhile)
    fake.plan(Plan(run_s=3600))
    dispatcher.step()

    job.refresh_from_db()
    assert job.status == S.CANCELLED
    assert len(fake.calls("started", job.pk)) == len(fake.calls("released", job.pk)) == 1


def test_a_job_that_trips_the_service_does_not_block_the_others(
    dispatcher, add_job, handler, monkeypatch, settings
):
    settings.POISON_DELAY_S = 600
    poison = add_job(gpu="H100")
    build_config = handler.build_config

    def build(job):
        if job.pk == poison.pk:
            raise ValueError("a mistake of ours")
        return build_config(job)

    monkeypatch.setattr(handler, "build_config", build)
    good = add_job(gpu="H100")

    dispatcher.until(good, S.SUCCEEDED)

    poison.refresh_from_db()
    assert (poison.status, poison.attempt) == (S.QUEUED, 2)
