from __future__ import annotations

from datetime import timedelta

import pytest
from django.core.files.base import ContentFile
from django.core.files.storage import storages
from django.core.management import call_command
from django.utils import timezone

from leaderboards import deletion
from leaderboards.deletion import delete_submission, purge_deleted
from leaderboards.models import AuditEvent, Submission, SubmissionSource
from runners.gpu.contract import Mode
from runners.models import Artifact, Job
from runners.states import FINAL, JobStatus
from tests.leaderboards.conftest import a_stage, good_stages

MONTH = timedelta(days=30)


def age(submission, days):
    ago = timezone.now() - timedelta(days=days)
    Submission.objects.filter(pk=submission.pk).update(deleted_at=ago)


@pytest.mark.parametrize("steps", [0, 1, 3])
def test_deleting_cancels_what_waits_or_runs_and_says_who_did_it(
    send, answer, dispatcher, fake, alice, steps
):
    of = send()
    answer(of.job, good_stages(), run_s=60)
    dispatcher.step(steps)

    delete_submission(of.submission, actor=alice)
    dispatcher.step(5)

    of.job.refresh_from_db()
    assert of.job.status == JobStatus.CANCELLED
    assert Job.objects.count() == 1
    assert not fake.alive()
    assert not of.submission.runs.exists()
    event = AuditEvent.objects.get(verb="submission.deleted")
    assert event.actor == alice
    assert AuditEvent.objects.get(verb="submission.cancelled").actor_label == alice.actor_label


def test_deleting_between_the_passes_cancels_the_secret_one(run, alice):
    submission = run(good_stages())

    delete_submission(submission, actor=alice)

    public, secret = submission.passes.order_by("secret")
    assert (public.job.status, secret.job.status) == (JobStatus.SUCCEEDED, JobStatus.CANCELLED)


def test_deleting_twice_is_one_deed(run, alice):
    submission = run({"test": a_stage()}, mode=Mode.TEST)

    delete_submission(submission, actor=alice)
    delete_submission(submission, actor=alice)

    assert AuditEvent.objects.filter(verb="submission.deleted").count() == 1


def test_jobs_that_the_app_above_gave_it_are_cancelled_too(run, send, alice, monkeypatch):
    other = send(Mode.TEST).job
    monkeypatch.setattr(deletion, "_finders", [lambda submission: [other]])

    delete_submission(run({"test": a_stage()}, mode=Mode.TEST), actor=alice)

    other.refresh_from_db()
    assert other.status in FINAL


def test_a_source_goes_after_the_grace_and_its_digest_stays(send, alice):
    submission = send(Mode.TEST).submission
    delete_submission(submission, actor=alice)
    age(submission, 29)

    assert purge_deleted(grace=MONTH).sources == 0
    age(submission, 31)
    call_command("purge_deleted")

    source = SubmissionSource.objects.get()
    assert (bytes(source.content), source.pk) == (b"", submission.source_id)
    assert source.purged_at
    assert AuditEvent.objects.filter(verb="submission.purged").count() == 1
    assert purge_deleted(grace=MONTH).sources == 0


def test_a_source_that_somebody_else_sent_too_stays(send, alice, bob):
    submission = send(Mode.TEST).submission
    send(Mode.TEST, actor=bob)
    delete_submission(submission, actor=alice)
    age(submission, 31)

    assert purge_deleted(grace=MONTH).sources == 0
    assert bytes(SubmissionSource.objects.get().content).startswith(b"def")


def test_the_same_code_can_be_sent_again_after_a_purge(send, alice):
    submission = send(Mode.TEST).submission
    delete_submission(submission, actor=alice)
    age(submission, 31)
    purge_deleted(grace=MONTH)

    again = send(Mode.TEST).submission

    assert again.source.text.startswith("def")
    assert again.source.purged_at is None


def test_files_go_with_the_submission_and_their_rows_stay(send, alice):
    of = send(Mode.TEST)
    key = storages["reports"].save(f"{of.job.pk}/1/x.zip", ContentFile(b"x"))
    made = Artifact.objects.create(
        job=of.job, attempt=1, name="x.zip", file=key, size=1, sha256="", content_type="x"
    )
    delete_submission(of.submission, actor=alice)
    age(of.submission, 31)

    assert purge_deleted(grace=MONTH).files == 1
    assert purge_deleted(grace=MONTH).files == 0

    made.refresh_from_db()
    assert made.purged_at
    assert not storages["reports"].exists(key)
