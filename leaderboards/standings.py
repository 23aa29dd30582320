"""Which run of a person counts: settled when one ends in secret, and when a submission goes."""

from __future__ import annotations

from typing import Any

from django.db import transaction
from django.db.models import Exists, OuterRef, QuerySet

from leaderboards.models import Leaderboard, Run, Standing, Submission
from runners.gpu.contract import Mode


def qualifying_runs() -> QuerySet[Run]:
    """Public scores of submissions that stand and whose secret pass was good on the same GPU."""
    secret = Run.objects.filter(
        submission=OuterRef("submission"), secret=True, gpu=OuterRef("gpu")
    ).order_by()
    return Run.objects.filter(
        Exists(secret.filter(mode=Mode.LEADERBOARD, passed=True)),
        ~Exists(secret.filter(passed=False)),
        secret=False,
        score__isnull=False,
        submission__verdict="",
        submission__deleted_at__isnull=True,
    ).order_by()


def settle_standing_of(submission: Submission) -> bool:
    """What this submission changed for its person; call it in the transaction of the change."""
    return settle_standing(submission.leaderboard_id, submission.gpu, submission.user_id)


@transaction.atomic
def settle_standing(leaderboard_id: int, gpu: str, user_id: int) -> bool:
    """Find the person's best run, and keep it; repeatable. True when it was another before."""
    place: dict[str, Any] = {"leaderboard_id": leaderboard_id, "gpu": gpu, "user_id": user_id}
    # Two passes of one person may end at once: whoever is second sees what the first one wrote.
    standing, _ = Standing.objects.select_for_update(no_key=True).get_or_create(**place)
    best = qualifying_runs().filter(**place).order_by("score", "pk").only("score").first()
    changed = standing.run_id != (best and best.pk)
    if changed:
        standing.run, standing.score = best, best.score if best else None
        standing.save(update_fields=["run", "score"])
    return changed


def clear_standings(leaderboard: Leaderboard) -> None:
    """All submissions went with their leaderboard."""
    leaderboard.standings.update(run=None, score=None)


def settle_all_standings() -> tuple[int, int]:
    """Every standing anew, one transaction each: how many there are, and how many were wrong."""
    place = ("leaderboard_id", "gpu", "user_id")
    places = set(qualifying_runs().values_list(*place).distinct())
    places |= set(Standing.objects.values_list(*place))
    return len(places), sum(settle_standing(*each) for each in sorted(places))
