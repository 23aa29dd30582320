from __future__ import annotations

from runners.backends.fake_plan import Plan
from runners.models import Job
from runners.states import JobStatus

S = JobStatus


def test_a_gpu_has_no_more_jobs_in_flight_than_it_may(dispatcher, add_job, fake):
    fake.plan(Plan(run_s=3600))
    for number in range(3):
        add_job(gpu="H100", owner_key=f"user-{number}")
        add_job(gpu="B200", owner_key=f"user-{number}")

    dispatcher.step(3)

    in_flight = Job.objects.in_flight()
    assert in_flight.filter(gpu="H100").count() == 1  # its limit
    assert in_flight.filter(gpu="B200").count() == 3


def test_a_user_has_no_more_jobs_in_flight_than_they_may(dispatcher, add_job, fake, settings):
    settings.IN_FLIGHT_PER_USER = 2
    fake.plan(Plan(run_s=3600))
    for _ in range(5):
        add_job(gpu="B200")
    add_job(gpu="H100")
    of_bob = add_job(owner_key="bob")

    dispatcher.step(3)

    assert Job.objects.in_flight().filter(owner_key="alice").count() == 2
    of_bob.refresh_from_db()
    assert of_bob.status == S.RUNNING


def test_many_jobs_of_one_user_do_not_keep_others_waiting(dispatcher, add_job, fake):
    first, *rest = [add_job(gpu="H100") for _ in range(10)]
    of_bob = add_job(gpu="H100", owner_key="bob")
    dispatcher.until(first, S.SUCCEEDED)

    dispatcher.until(of_bob, S.SUCCEEDED)

    assert all(Job.objects.get(pk=job.pk).status == S.QUEUED for job in rest)


def test_a_job_for_a_gpu_that_nobody_offers_waits_until_its_limit(dispatcher, add_job, settings):
    job = add_job(gpu="T4")
    dispatcher.step()
    assert Job.objects.get(pk=job.pk).status == S.QUEUED

    settings.QUEUE_LIMIT_S = 0
    dispatcher.step()

    job.refresh_from_db()
    assert (job.status, job.failure_kind) == (S.TIMED_OUT, "queue_limit")


def test_a_job_that_cannot_be_claimed_does_not_block_the_others(
    dispatcher, add_job, handler, monkeypatch, settings
):
    settings.POISON_DELAY_S = 600
    poison, good = add_job(gpu="H100"), add_job(gpu="H100")

    def moved(job, event):
        if job.pk == poison.pk:
            raise ValueError("a mistake of ours")

    monkeypatch.setattr(handler, "moved", moved)

    dispatcher.until(good, S.SUCCEEDED)

    poison.refresh_from_db()
    assert poison.status == S.QUEUED
