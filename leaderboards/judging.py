"""Taking a submission that cheated out of the ranking, and putting back one that did not."""

from __future__ import annotations

from typing import Unpack

from django.db import transaction

from leaderboards import audit
from leaderboards.audit import By
from leaderboards.models import Submission
from leaderboards.standings import settle_standing_of
from leaderboards.verbs import SubmissionVerb


@transaction.atomic
def disqualify(submission: Submission, **by: Unpack[By]) -> None:
    """The person's next best run counts instead. Doing it twice is harmless."""
    _judge(submission, Submission.Verdict.HACKED, SubmissionVerb.DISQUALIFIED, by)


@transaction.atomic
def reinstate(submission: Submission, **by: Unpack[By]) -> None:
    """It counts again, if its runs passed. Doing it twice is harmless."""
    _judge(submission, "", SubmissionVerb.REINSTATED, by)


def _judge(submission: Submission, verdict: str, verb: SubmissionVerb, by: By) -> None:
    locked = Submission.objects.select_for_update(no_key=True).get(pk=submission.pk)
    if locked.verdict == verdict:
        return
    locked.verdict = verdict
    locked.save(update_fields=["verdict"])
    audit.record(verb, locked, **by)
    settle_standing_of(locked)
