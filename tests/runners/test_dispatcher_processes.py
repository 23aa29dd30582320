"""Dispatchers as real processes that are killed, stopped and ended. FR-30 throughout."""

from __future__ import annotations

import signal
import time

import pytest
from django.db import connection

from runners.backends.fake_plan import Plan
from runners.models import Artifact, DispatcherHeartbeat, Job
from runners.states import FINAL, JobStatus
from runners.transitions import move, queue_job
from tests.runners.processes import dispatchers, migrated_file, shared_database, wait_until
from tests.server.database import InFile, OnPostgres

__all__ = ["dispatchers", "migrated_file", "shared_database"]
S = JobStatus


def add_job(gpu="B200", owner_key="alice") -> Job:
    return queue_job(
        kind="test", gpu=gpu, runner="fake", owner_key=owner_key, actor_label=owner_key
    )


def status_of(job: Job) -> str:
    return Job.objects.get(pk=job.pk).status


def wait_for(job: Job, status: JobStatus) -> Job:
    wait_until(lambda: status_of(job) in {status, *FINAL})
    job.refresh_from_db()
    assert job.status == status, (job.failure_kind, job.failure_message)
    return job


def kill(process) -> None:
    process.send_signal(signal.SIGKILL)
    process.wait()


def assert_ended_once(job: Job) -> None:
    assert job.events.filter(to_status__in=FINAL).count() == 1


def test_killed_before_the_start_a_job_is_started_once(dispatchers):
    fake = dispatchers.fake
    fake.plan(Plan(start_s=600))
    job = add_job()
    first = dispatchers.start()
    wait_for(job, S.STARTING)
    kill(first)
    assert fake.calls("started") == []

    fake.plan(Plan())
    dispatchers.start()
    wait_for(job, S.SUCCEEDED)

    assert (len(fake.calls("started")), job.attempt) == (1, 2)
    assert_ended_once(job)


def test_killed_between_the_start_and_saving_its_id_what_runs_is_ended_first(dispatchers):
    fake = dispatchers.fake
    fake.plan(Plan(answer_s=600, run_s=600))
    job = add_job()
    first = dispatchers.start(START_LIMIT_S="4")
    wait_until(lambda: fake.calls("started"))
    kill(first)
    assert status_of(job) == S.STARTING

    fake.plan(Plan(run_s=0.3))
    dispatchers.start(START_LIMIT_S="4")
    wait_for(job, S.SUCCEEDED)

    lost, second = fake.calls("started")
    ended = [c["at"] for c in fake.calls("cancelled") if c["external_id"] == lost["external_id"]]
    assert len(ended) == 1
    assert ended[0] < second["at"]
    assert_ended_once(job)


def test_killed_while_five_run_none_is_started_again(dispatchers):
    fake = dispatchers.fake
    fake.plan(Plan(run_s=600))
    jobs = [add_job(owner_key=f"user-{number}") for number in range(5)]
    first = dispatchers.start()
    wait_until(lambda: Job.objects.filter(status=S.RUNNING).count() == 4)
    kill(first)

    fake.plan(Plan())
    dispatchers.start()

    for job in jobs:
        wait_for(job, S.SUCCEEDED)
        assert (len(fake.calls("started", job.pk)), job.attempt) == (1, 1)
        assert_ended_once(job)


def test_killed_while_collecting_the_result_is_kept_once(dispatchers):
    hold = dispatchers.folder / "hold-collecting"
    hold.touch()
    job = add_job()
    first = dispatchers.start()
    wait_for(job, S.COLLECTING)
    wait_until(lambda: Artifact.objects.count() == 2)
    kill(first)
    # What it would have left a moment before, and what a process that runs still needs.
    (dispatchers.scratch / f"kernelbot-collect-{first.pid}-abc").mkdir()
    of_somebody_else = dispatchers.scratch / "kernelbot-collect-1-abc"
    of_somebody_else.mkdir()

    hold.unlink()
    dispatchers.start()
    wait_for(job, S.SUCCEEDED)

    wait_until(lambda: list(dispatchers.scratch.glob("kernelbot-*")) == [of_somebody_else])
    assert len(dispatchers.fake.calls("started")) == 1
    assert Artifact.objects.count() == 2
    assert_ended_once(job)


@pytest.mark.parametrize("status", [S.RUNNING, S.COLLECTING])
def test_stopped_for_longer_than_its_lease_a_dispatcher_writes_nothing_when_it_wakes(
    dispatchers, status
):
    fake, hold = dispatchers.fake, dispatchers.folder / "hold-collecting"
    hold.touch()
    fake.plan(Plan(run_s=600 if status == S.RUNNING else 0))
    job = add_job()
    first = dispatchers.start()
    wait_for(job, status)
    if status == S.COLLECTING:  # nobody else could write while it sleeps on a lock of SQLite
        wait_until(lambda: Artifact.objects.count() == 2)
    sleeper = job.lease_owner
    first.send_signal(signal.SIGSTOP)
    second = dispatchers.start()
    wait_until(lambda: Job.objects.get(pk=job.pk).lease_owner not in ("", sleeper))
    fake.plan(Plan())
    hold.unlink()
    wait_for(job, S.SUCCEEDED)

    first.send_signal(signal.SIGCONT)
    wait_until(lambda: DispatcherHeartbeat.objects.get(owner=sleeper).in_flight == 0)

    assert_ended_once(job)
    assert len(fake.calls("started")) == 1
    assert sleeper not in job.events.get(to_status=S.SUCCEEDED).actor_label
    # Both work on.
    jobs = [add_job() for _ in range(4)]
    for other in jobs:
        wait_for(other, S.SUCCEEDED)
    for process in (first, second):
        process.terminate()
        assert process.wait(60) == 0


def test_sigterm_leaves_runs_alone_and_the_next_dispatcher_goes_on_at_once(dispatchers):
    fake = dispatchers.fake
    fake.plan(Plan(run_s=600))
    job = add_job()
    first = dispatchers.start(LEASE_S="3600")
    wait_for(job, S.RUNNING)

    first.terminate()
    assert first.wait(60) == 0
    assert status_of(job) == S.RUNNING
    assert fake.calls("cancelled") == []
    assert not DispatcherHeartbeat.objects.exists()
    fake.plan(Plan())
    dispatchers.start(LEASE_S="3600")

    wait_for(job, S.SUCCEEDED)
    assert len(fake.calls("started")) == 1


def test_sigterm_during_a_start_saves_the_id_first(dispatchers):
    dispatchers.fake.plan(Plan(answer_s=1, run_s=600))
    job = add_job()
    process = dispatchers.start()
    wait_until(lambda: dispatchers.fake.calls("started"))

    process.terminate()

    assert process.wait(60) == 0
    [call] = dispatchers.fake.calls("started")
    job.refresh_from_db()
    assert (job.status, job.external_id) == (S.RUNNING, call["external_id"])


def test_sigterm_before_a_start_lets_it_come_first(dispatchers):
    """Whoever comes next could not know that nothing was started, and would wait."""
    hold = dispatchers.folder / "hold-config"
    hold.touch()
    dispatchers.fake.plan(Plan(run_s=600))
    job = add_job()
    process = dispatchers.start()
    wait_for(job, S.STARTING)

    process.terminate()
    time.sleep(1)
    hold.unlink()

    assert process.wait(60) == 0
    [call] = dispatchers.fake.calls("started")
    job.refresh_from_db()
    assert (job.status, job.external_id) == (S.RUNNING, call["external_id"])


def test_sigterm_does_not_wait_for_a_start_that_hangs(dispatchers):
    dispatchers.fake.plan(Plan(start_s=600))
    job = add_job()
    process = dispatchers.start(START_LIMIT_S="600")
    wait_for(job, S.STARTING)

    process.terminate()

    assert process.wait(60) == 0
    dispatchers.fake.plan(Plan())
    dispatchers.start()
    wait_for(job, S.SUCCEEDED)
    assert (len(dispatchers.fake.calls("started")), job.attempt) == (1, 2)


def test_sigterm_does_not_wait_for_a_provider_that_does_not_answer(dispatchers, handler):
    fake = dispatchers.fake
    fake.plan(Plan(run_s=600, cancel_s=600))
    job = add_job()
    process = dispatchers.start()
    wait_for(job, S.RUNNING)
    wait_until(lambda: DispatcherHeartbeat.objects.get().in_flight == 1)
    move(job, S.CANCELLED, actor_label="alice")
    wait_until(lambda: DispatcherHeartbeat.objects.get().in_flight == 0)

    process.terminate()
    assert process.wait(60) == 0

    assert Job.objects.get(pk=job.pk).stop_due
    fake.plan(Plan(run_s=600))
    dispatchers.start()
    wait_until(lambda: not Job.objects.get(pk=job.pk).stop_due)
    assert fake.alive() == []


def test_sigterm_does_not_wait_for_a_result_that_takes_long_to_read(dispatchers):
    (dispatchers.folder / "hold-collecting").touch()
    job = add_job()
    process = dispatchers.start()
    wait_for(job, S.COLLECTING)

    process.terminate()

    assert process.wait(60) == 0
    assert status_of(job) == S.COLLECTING


def test_a_database_that_is_away_for_a_while_costs_no_run(dispatchers, shared_database, tmp_path):
    fake = dispatchers.fake
    fake.plan(Plan(run_s=600))
    job = add_job()
    process = dispatchers.start()
    wait_for(job, S.RUNNING)
    is_file = shared_database.startswith("sqlite")
    database = InFile(tmp_path) if is_file else OnPostgres(shared_database)

    database.take_away()
    wait_until(lambda: "hold_on failed" in dispatchers.log.read_text())
    database.bring_back()
    connection.close()

    fake.plan(Plan())
    wait_for(job, S.SUCCEEDED)
    assert (len(fake.calls("started")), job.attempt) == (1, 1)
    process.terminate()
    assert process.wait(60) == 0


def test_two_dispatchers_start_every_job_once_and_keep_the_limits(dispatchers):
    fake = dispatchers.fake
    fake.plan(Plan(run_s=0.3))
    jobs = [add_job(gpu, f"user-{n % 3}") for n in range(10) for gpu in ("B200", "H100")]
    for _ in range(2):
        dispatchers.start()
    most = {"B200": 0, "H100": 0}

    while Job.objects.active().exists():
        for gpu in most:
            most[gpu] = max(most[gpu], Job.objects.in_flight().filter(gpu=gpu).count())
        time.sleep(0.01)

    assert most["B200"] <= 4
    assert most["H100"] == 1
    for job in jobs:
        assert (status_of(job), len(fake.calls("started", job.pk))) == (S.SUCCEEDED, 1)
    claimed_by = {job.events.get(to_status=S.STARTING).actor_label for job in jobs}
    assert len(claimed_by) == 2
    assert "locked" not in dispatchers.log.read_text()


def test_nothing_is_unpickled_in_a_dispatcher(dispatchers, tmp_path):
    """FR-25: an exception of a submission whose unpickling runs code."""
    bad = tmp_path / "pickle"
    bad.write_bytes(b"\x80\x04\x8c\x08builtins\x8c\x05print\x93\x8c\x05owned\x85R.")
    dispatchers.fake.plan(Plan(envelope=str(bad)))
    dispatchers.start()

    job = wait_for(add_job(), S.FAILED)

    assert job.failure_kind == "bad_envelope"
    assert "\nowned\n" not in dispatchers.log.read_text()
