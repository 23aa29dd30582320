"""What operators make of a request: reviewed, or rejected and why."""

from __future__ import annotations

from django.db import transaction

from leaderboards import audit
from leaderboards.audit import NO_REQUEST, RequestContext
from leaderboards.models import PopcornUser
from profiling.exceptions import NotReviewable
from profiling.models import ProfileRequest, Review
from profiling.reports.text import storable
from profiling.verbs import Verb

NOTE_CHARS = 2_000
_VERBS = {
    ProfileRequest.Decision.REVIEWED: Verb.REVIEWED,
    ProfileRequest.Decision.REJECTED: Verb.REJECTED,
}


def review_request(
    request: ProfileRequest,
    *,
    decision: ProfileRequest.Decision,
    note: str,
    actor: PopcornUser,
    context: RequestContext = NO_REQUEST,
) -> Review:
    """Review and audit in one transaction; `note` is for the owner too.

    Raises NotReviewable before the profile has ended, and for a rejection without a note.
    """
    note = storable(note.strip(), NOTE_CHARS)
    if request.job is None or not request.job.is_final:
        raise NotReviewable("only a profile that has ended can be reviewed")
    if decision == ProfileRequest.Decision.REJECTED and not note:
        raise NotReviewable("say in the note why it is rejected: its owner reads it")
    with transaction.atomic():
        made = Review.objects.create(request=request, reviewer=actor, decision=decision, note=note)
        request.review_decision = decision
        request.save(update_fields=["review_decision"])
        audit.record(
            _VERBS[decision], request, actor=actor, context=context, review=made.pk, note=note
        )
    return made
