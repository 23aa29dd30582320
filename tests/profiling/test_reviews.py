"""Operators' word on a request: who said it, on what, and that it stays said."""

from __future__ import annotations

import pytest
from django.db import IntegrityError, transaction

from leaderboards.models import AuditEvent
from profiling.exceptions import NotReviewable
from profiling.models import ProfileRequest, Review
from profiling.reviews import NOTE_CHARS, review_request
from runners.models import AppendOnlyError
from tests.profiling.evidence import finish
from tests.profiling.orders import refuse, submit

Decision = ProfileRequest.Decision


@pytest.fixture
def ended(captured):
    finish(captured.job)
    return captured


@pytest.mark.parametrize(
    ("decision", "verb"),
    [(Decision.REVIEWED, "profile.reviewed"), (Decision.REJECTED, "profile.rejected")],
)
def test_a_review_is_kept_with_its_audit_row(ended, olga, decision, verb):
    review_request(ended, decision=decision, note=" clocks were not locked ", actor=olga)

    review = Review.objects.get()
    assert (review.request, review.reviewer, review.decision) == (ended, olga, decision)
    event = AuditEvent.objects.get(verb=verb)
    assert (event.actor, event.subject_id) == (olga, str(ended.pk))
    assert event.data == {"review": review.pk, "note": "clocks were not locked"}
    ended.refresh_from_db()
    assert ended.review_decision == decision


def test_the_newest_review_counts_and_the_older_one_stays(ended, olga):
    review_request(ended, decision=Decision.REJECTED, note="wrong GPU", actor=olga)
    review_request(ended, decision=Decision.REVIEWED, note="", actor=olga)

    ended.refresh_from_db()
    assert ended.review_decision == "reviewed"
    assert [review.decision for review in ended.reviews.all()] == ["reviewed", "rejected"]


def test_a_rejection_says_why(ended, olga):
    with pytest.raises(NotReviewable, match="why"):
        review_request(ended, decision=Decision.REJECTED, note="  \n", actor=olga)
    with pytest.raises(IntegrityError), transaction.atomic():
        Review.objects.create(request=ended, reviewer=olga, decision="rejected")

    assert not AuditEvent.objects.filter(verb="profile.rejected").exists()


def test_what_has_not_ended_or_never_ran_is_not_reviewed(alice, olga, rowsum):
    for request in (submit(alice), refuse(alice)):
        with pytest.raises(NotReviewable, match="ended"):
            review_request(request, decision=Decision.REVIEWED, note="", actor=olga)


def test_a_review_is_never_changed(ended, olga):
    review = review_request(ended, decision=Decision.REVIEWED, note="x", actor=olga)

    review.note = "y"
    with pytest.raises(AppendOnlyError):
        review.save()


def test_a_note_with_unstorable_characters_is_kept_as_far_as_a_database_can(ended, olga):
    note = "\0" + "n" * (NOTE_CHARS + 5)

    review = review_request(ended, decision=Decision.REVIEWED, note=note, actor=olga)

    review.refresh_from_db()
    assert len(review.note) == NOTE_CHARS
    assert "\0" not in review.note
