from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from leaderboards.audit import RequestContext
from leaderboards.exceptions import (
    GpuPaused,
    HourlyLimitReached,
    NotAccepting,
    UnknownLeaderboard,
)
from leaderboards.models import AcceptanceSwitch, AuditEvent, RateLimit, Submission
from leaderboards.submitting import SubmissionOrder, submit
from runners.gpu.contract import Mode
from runners.models import Job
from runners.pauses import pause_gpu

SOURCE = b"def custom_kernel(data):\n    return data\n"


def an_order(**fields) -> SubmissionOrder:
    defaults = {
        "leaderboard_name": "rowsum",
        "gpu_name": "B200",
        "mode": Mode.TEST,
        "file_name": "submission.py",
        "content": SOURCE,
    }
    return SubmissionOrder(**defaults | fields)


@pytest.fixture
def send(alice, rowsum):
    def call(actor=alice, **fields) -> Submission:
        return submit(an_order(**fields), actor=actor).submission

    return call


@pytest.mark.parametrize("mode", [Mode.TEST, Mode.BENCHMARK, Mode.LEADERBOARD])
def test_an_accepted_submission_has_all_its_rows(alice, rowsum, mode):
    context = RequestContext(request_id="r1", address="192.0.2.7", client_version="1.4.0")

    made = submit(an_order(mode=mode, gpu_name="b200"), actor=alice, context=context)

    submission = Submission.objects.get()
    assert made.submission == submission
    assert (submission.user, submission.leaderboard, submission.gpu) == (alice, rowsum, "B200")
    assert (submission.mode, submission.revision) == (mode, rowsum.current_revision)
    assert bytes(submission.source.content) == SOURCE
    assert (made.secret, made.job) == (False, Job.objects.get())
    assert (made.job.kind, made.job.gpu, made.job.runner) == (mode, "B200", "fake")
    assert made.job.owner_key == "id-alice"
    event = AuditEvent.objects.get(verb="submission.accepted")
    assert (event.actor, event.subject_id, event.address) == (
        alice,
        str(submission.pk),
        "192.0.2.7",
    )


def test_a_refused_submission_leaves_an_audit_row_and_nothing_else(send, alice):
    with pytest.raises(UnknownLeaderboard):
        send(leaderboard_name="no\0where\ud800" + "x" * 5000)

    event = AuditEvent.objects.get()
    assert (event.verb, event.actor) == ("submission.refused", alice)
    assert (event.data["status"], event.data["code"]) == (404, "unknown_leaderboard")
    assert not Submission.objects.exists()
    assert not Job.objects.exists()


def test_while_the_operators_stopped_submissions_none_is_accepted(send):
    AcceptanceSwitch.objects.create(accepts=False, changed_by="olga")

    with pytest.raises(NotAccepting) as refused:
        send()

    assert (refused.value.http_status, refused.value.retry_after) == (503, 600)
    assert not Submission.objects.exists()

    AcceptanceSwitch.objects.create(accepts=True, changed_by="olga")

    assert send().pk


@pytest.mark.parametrize("mode", [Mode.TEST, Mode.BENCHMARK, Mode.LEADERBOARD])
def test_fr_09_nobody_is_sent_to_wait_for_a_gpu_that_is_paused(send, mode):
    pause_gpu("B200", kind="x", reason="y", actor_label="olga")

    with pytest.raises(GpuPaused, match="fault of this service") as refused:
        send(mode=mode)

    assert (refused.value.http_status, refused.value.retry_after) == (503, 600)
    assert send(mode=mode, gpu_name="H100").pk


# --- Hourly limits ---


def limit(board, category, maximum):
    RateLimit.objects.create(
        leaderboard=board, mode_category=category, max_submissions_per_hour=maximum
    )


def test_the_limit_says_count_maximum_category_and_wait(send, rowsum):
    limit(rowsum, "test", 2)
    first = send()
    send()
    Submission.objects.filter(pk=first.pk).update(
        created_at=timezone.now() - timedelta(minutes=59, seconds=30)
    )

    with pytest.raises(HourlyLimitReached) as refused:
        send()

    assert refused.value.http_status == 429
    assert 20 <= refused.value.retry_after <= 30
    assert f"2 of at most 2 submissions an hour were sent to 'rowsum' in the category 'test': try again in {refused.value.retry_after} seconds" == str(refused.value)  # fmt: skip
    assert Submission.objects.count() == 2


def test_a_place_is_free_again_after_an_hour(send, rowsum):
    limit(rowsum, "test", 1)
    first = send()
    Submission.objects.filter(pk=first.pk).update(created_at=timezone.now() - timedelta(hours=1))

    assert send().pk


def test_zero_means_none(send, rowsum):
    limit(rowsum, "leaderboard", 0)

    with pytest.raises(HourlyLimitReached, match="0 of at most 0") as refused:
        send(mode=Mode.LEADERBOARD)

    assert refused.value.retry_after == 0


def test_a_lowered_limit_is_waited_for_until_it_has_a_place(send, rowsum):
    limit(rowsum, "test", 1)
    for minutes in (50, 20):
        RateLimit.objects.update(max_submissions_per_hour=5)
        made = send()
        ago = timezone.now() - timedelta(minutes=minutes)
        Submission.objects.filter(pk=made.pk).update(created_at=ago)
    RateLimit.objects.update(max_submissions_per_hour=1)

    with pytest.raises(HourlyLimitReached) as refused:
        send()

    assert 39 * 60 < refused.value.retry_after <= 40 * 60


def test_categories_leaderboards_and_people_count_apart(send, rowsum, bob, make_leaderboard):
    make_leaderboard("other")
    limit(rowsum, "test", 1)
    limit(rowsum, "leaderboard", 1)
    send()

    for elsewhere in ({"mode": Mode.LEADERBOARD}, {"leaderboard_name": "other"}, {"actor": bob}):
        assert send(**elsewhere).pk
    for full in ({"mode": Mode.BENCHMARK}, {"mode": Mode.LEADERBOARD}):
        with pytest.raises(HourlyLimitReached):
            send(**full)


def test_deleting_a_submission_gives_no_place_back(send, rowsum):
    limit(rowsum, "test", 1)
    made = send()
    Submission.objects.filter(pk=made.pk).update(deleted_at=timezone.now())

    with pytest.raises(HourlyLimitReached):
        send()
