"""What operators set: submissions per hour, and whether any are taken at all.

Both are read where a submission is accepted: acceptance.py.
"""

from __future__ import annotations

from typing import Unpack

from django.db import transaction

from leaderboards import audit
from leaderboards.audit import SYSTEM_LABEL, By
from leaderboards.exceptions import UnknownRateLimit
from leaderboards.models import AcceptanceSwitch, Leaderboard, ModeCategory, RateLimit
from leaderboards.verbs import Verb


@transaction.atomic
def set_rate_limit(
    leaderboard: Leaderboard, category: ModeCategory, maximum: int, **by: Unpack[By]
) -> RateLimit:
    """At most `maximum` submissions an hour of each person in this category; 0 allows none."""
    limit, _ = RateLimit.objects.update_or_create(
        leaderboard=leaderboard,
        mode_category=category,
        defaults={"max_submissions_per_hour": maximum},
    )
    audit.record(
        Verb.RATE_LIMIT_SET,
        leaderboard,
        **by,
        name=leaderboard.name,
        category=category,
        maximum=maximum,
    )
    return limit


@transaction.atomic
def remove_rate_limit(leaderboard: Leaderboard, category: ModeCategory, **by: Unpack[By]) -> None:
    """Unlimited from now on. Raises UnknownRateLimit."""
    removed, _ = RateLimit.objects.filter(leaderboard=leaderboard, mode_category=category).delete()
    if not removed:
        raise UnknownRateLimit(
            f"leaderboard {leaderboard.name!r} has no limit in the category {category.value!r}"
        )
    audit.record(
        Verb.RATE_LIMIT_REMOVED, leaderboard, **by, name=leaderboard.name, category=category
    )


@transaction.atomic
def switch_acceptance(accepts: bool, **by: Unpack[By]) -> AcceptanceSwitch:
    """Take submissions of every mode, or none; what was taken already runs on."""
    actor = by["actor"]
    label = by.get("actor_label") or (actor.actor_label if actor else SYSTEM_LABEL)
    switch = AcceptanceSwitch.objects.create(accepts=accepts, changed_by=label)
    audit.record(Verb.ACCEPTANCE_SWITCHED, switch, **by, accepts=accepts)
    return switch
