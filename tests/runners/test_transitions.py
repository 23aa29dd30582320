from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import IntegrityError, transaction
from django.utils import timezone

from runners import handlers
from runners.exceptions import IllegalMove, LostRace
from runners.models import Job, JobEvent
from runners.states import FINAL, IN_FLIGHT, MOVES, JobStatus
from runners.transitions import move, queue_job


class Recorder:
    """A handler that records moves, and refuses them when told to."""

    def __init__(self):
        self.moves = []
        self.refuse = False

    def moved(self, job, event):
        if self.refuse:
            raise RuntimeError("the audit row cannot be written")
        self.moves.append((event.from_status, event.to_status, job.status))


@pytest.fixture
def recorder(monkeypatch):
    recorder = Recorder()
    monkeypatch.setitem(handlers._handlers, "test", recorder)
    return recorder


def make_job(status: JobStatus = JobStatus.QUEUED, **fields) -> Job:
    if status in IN_FLIGHT:
        fields = {
            "lease_owner": "one",
            "lease_until": timezone.now() + timedelta(seconds=30),
            "external_id": "run-1",
        } | fields
    if status in FINAL:
        fields = {"finished_at": timezone.now(), "failure_kind": "x"} | fields
    return Job.objects.create(
        kind="test", gpu="B200", runner="fake", owner_key="alice", status=status, **fields
    )


def changes_for(to: JobStatus) -> dict[str, object]:
    """What a caller gives along with a move for the row to be valid."""
    if to in IN_FLIGHT:
        lease = {"lease_owner": "one", "lease_until": timezone.now() + timedelta(seconds=30)}
        return lease | {"external_id": "run-2"}
    return {"failure_kind": "x"} if to in (JobStatus.FAILED, JobStatus.TIMED_OUT) else {}


@pytest.mark.django_db
@pytest.mark.parametrize("to", JobStatus)
@pytest.mark.parametrize("source", JobStatus)
def test_move_follows_the_table_and_nothing_else(recorder, source, to):
    job = make_job(source)

    if to in MOVES[source]:
        event = move(job, to, actor_label="olga", reason="why", **changes_for(to))
        assert (event.from_status, event.to_status, event.reason) == (source, to, "why")
        assert recorder.moves == [(source, to, to)]
        assert Job.objects.get(pk=job.pk).status == to == job.status
    else:
        with pytest.raises(IllegalMove):
            move(job, to, actor_label="olga", **changes_for(to))
        assert not JobEvent.objects.exists()
        assert Job.objects.get(pk=job.pk).status == source


def test_a_new_job_has_its_first_event(db):
    job = queue_job(kind="test", gpu="B200", runner="fake", owner_key="alice", actor_label="alice")

    event = job.events.get()
    assert (event.from_status, event.to_status, event.actor_label) == ("", "queued", "alice")


@pytest.mark.django_db
def test_of_two_movers_one_wins(recorder):
    job = make_job()
    other = Job.objects.get(pk=job.pk)
    move(job, JobStatus.CANCELLED, actor_label="olga")

    with pytest.raises(LostRace):
        move(other, JobStatus.STARTING, actor_label="dispatcher", **changes_for(JobStatus.STARTING))

    assert JobEvent.objects.count() == 1


@pytest.mark.django_db
def test_a_dispatcher_that_lost_its_lease_writes_nothing(recorder):
    job = make_job(JobStatus.COLLECTING, lease_owner="two")

    with pytest.raises(LostRace):
        move(job, JobStatus.SUCCEEDED, actor_label="dispatcher one", held_by="one")

    assert Job.objects.get(pk=job.pk).status == JobStatus.COLLECTING


@pytest.mark.django_db
def test_a_late_answer_of_an_old_attempt_is_ignored(recorder):
    job = make_job(JobStatus.RUNNING)
    late = Job.objects.get(pk=job.pk)
    move(job, JobStatus.QUEUED, actor_label="dispatcher")
    move(job, JobStatus.STARTING, actor_label="d", lease_owner="o", lease_until=timezone.now())
    move(job, JobStatus.RUNNING, actor_label="d", external_id="run-2")

    with pytest.raises(LostRace):
        move(late, JobStatus.COLLECTING, actor_label="dispatcher")

    assert job.attempt == 2


@pytest.mark.django_db
def test_a_move_whose_audit_row_fails_did_not_happen(recorder):
    job = make_job()
    recorder.refuse = True

    with pytest.raises(RuntimeError, match="audit"):
        move(job, JobStatus.CANCELLED, actor_label="olga")

    assert Job.objects.get(pk=job.pk).status == JobStatus.QUEUED
    assert not JobEvent.objects.exists()


@pytest.mark.django_db
def test_a_final_job_leaves_its_run_to_be_stopped(recorder):
    running, queued = make_job(JobStatus.RUNNING), make_job()

    move(running, JobStatus.CANCELLED, actor_label="olga")
    move(queued, JobStatus.CANCELLED, actor_label="olga")

    assert running.stop_due
    assert not queued.stop_due
    assert running.finished_at is not None
    assert (running.lease_owner, running.lease_until) == ("", None)


@pytest.mark.django_db
@pytest.mark.parametrize(
    "fields",
    [
        {"status": "sleeping"},
        {"status": "running", "lease_owner": "one", "lease_until": timezone.now()},
        {"status": "starting"},
        {"status": "succeeded"},
        {"finished_at": timezone.now()},
        {"status": "failed", "finished_at": timezone.now()},
    ],
    ids=["unknown", "no external id", "no lease", "no end", "end too soon", "no reason"],
)
def test_the_database_refuses_impossible_jobs(fields):
    with pytest.raises(IntegrityError), transaction.atomic():
        Job.objects.create(kind="test", gpu="B200", runner="fake", owner_key="a", **fields)


@pytest.mark.django_db
def test_two_jobs_cannot_share_a_run():
    make_job(JobStatus.RUNNING)

    with pytest.raises(IntegrityError), transaction.atomic():
        make_job(JobStatus.RUNNING)
