from __future__ import annotations

from datetime import timedelta

import pytest
from asgiref.sync import async_to_sync, sync_to_async
from django.utils import timezone

from runners import handlers
from runners.artifacts import open_artifact
from runners.backends.fake_plan import Plan, PlannedFault, write_envelope
from runners.gpu.contract import Failure, FailureKind
from runners.models import DispatcherHeartbeat, GpuPause, Job
from runners.pauses import resume_gpu
from runners.states import FINAL, JobStatus
from runners.transitions import move
from tests.runners.conftest import Steps

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
    assert len(fake.calls("started", job.pk)) == 2
    assert fake.alive() == []


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


def test_a_job_that_is_cancelled_while_it_runs_is_stopped(dispatcher, add_job, fake):
    fake.plan(Plan(run_s=3600))
    job = dispatcher.until(add_job(), S.RUNNING)

    move(job, S.CANCELLED, actor_label="alice")
    dispatcher.step()

    job.refresh_from_db()
    assert (job.status, job.stop_due) == (S.CANCELLED, False)
    assert fake.alive() == []
    assert dispatcher.dispatcher.flights == {}


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


@pytest.mark.parametrize("content", [b"", b"\x00\x00\x00\x05hello", b"\x80\x04cos\nsystem\n."])
def test_bytes_that_are_no_envelope_are_our_failure(
    dispatcher, add_job, fake, tmp_path, content, caplog
):
    """FR-25: malformed bytes are an infrastructure failure; the first bytes are in the log only."""
    (tmp_path / "bad").write_bytes(content)
    fake.plan(Plan(envelope=str(tmp_path / "bad")))
    job = add_job()

    dispatcher.until(job, S.FAILED)

    assert job.failure_kind == "bad_envelope"
    assert "not the submission's fault" in job.failure_message
    assert repr(content) in caplog.text
    assert repr(content) not in job.failure_message


def test_the_result_of_another_job_is_refused(dispatcher, add_job, fake, tmp_path):
    first = dispatcher.until(add_job(), S.RUNNING)
    [call] = fake.calls("started")
    write_envelope(tmp_path / "result", fake.config_of(call["external_id"]), Plan())
    dispatcher.until(first, S.SUCCEEDED)
    fake.plan(Plan(envelope=str(tmp_path / "result")))

    job = dispatcher.until(add_job(), S.FAILED)

    assert job.failure_kind == "bad_envelope"
    assert not job.artifacts.exists()


def test_a_result_that_changes_after_it_was_stored_is_refused(
    dispatcher, add_job, fake, handler, monkeypatch
):
    """FR-32: what was stored stays as it is."""
    with monkeypatch.context() as patched:
        patched.setattr(handler, "keep_results", None)
        job = dispatcher.until(add_job(), S.COLLECTING)
        dispatcher.step()
    stored = [artifact.sha256 for artifact in job.artifacts.all()]
    run = fake.root / "runs" / job.external_id
    fake.plan(Plan(archive=str(run / "config.json")))
    (run / "result.envelope").unlink()

    dispatcher.until(job, S.FAILED)

    assert job.failure_kind == "result_changed"
    assert [artifact.sha256 for artifact in job.artifacts.all()] == stored


def test_a_result_that_is_too_large_is_not_read(dispatcher, add_job, fake, settings):
    settings.ENVELOPE_MAX_BYTES = 100

    job = dispatcher.until(add_job(), S.FAILED)

    assert job.failure_kind == "bad_envelope"


def test_machines_without_counters_pause_their_gpu_until_somebody_resumes_it(
    dispatcher, add_job, fake
):
    """FR-09: further jobs are not burnt one after the other."""
    failure = Failure(kind=FailureKind.COUNTERS_NOT_PERMITTED, message="The host forbids it.")
    fake.plan(Plan(failure=failure))
    job = dispatcher.until(add_job(), S.FAILED)
    assert (job.failure_kind, job.attempt) == ("counters_not_permitted", 1)
    pause = GpuPause.objects.get()
    assert (pause.gpu, pause.reason) == ("B200", "The host forbids it.")
    fake.plan(Plan())
    waiting, elsewhere = add_job(), add_job(gpu="H100")
    dispatcher.until(elsewhere, S.SUCCEEDED)
    assert Job.objects.get(pk=waiting.pk).status == S.QUEUED

    resume_gpu("B200", actor_label="olga")

    dispatcher.until(waiting, S.SUCCEEDED)


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


def test_results_that_cannot_be_read_are_tried_again_and_then_fail_as_ours(
    dispatcher, add_job, handler, monkeypatch, settings
):
    def read_results(job, envelope):
        raise ValueError("a mistake of ours")

    with monkeypatch.context() as patched:
        patched.setattr(handler, "read_results", read_results)
        job = add_job()
        dispatcher.step(5)
        assert Job.objects.get(pk=job.pk).status == S.COLLECTING
    dispatcher.until(job, S.SUCCEEDED)

    monkeypatch.setattr(handler, "read_results", read_results)
    settings.COLLECT_PATIENCE_S = 0
    job = dispatcher.until(add_job(), S.FAILED)
    assert job.failure_kind == "collect_failed"


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


def test_a_dispatcher_that_was_stopped_for_longer_than_its_lease_starts_nothing(
    dispatcher, add_job, fake
):
    """FR-30: it was stopped between its claim and the start."""
    job = add_job()
    async_to_sync(dispatcher.dispatcher.take_up)()
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
