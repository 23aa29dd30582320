"""The figures of GET /admin/stats (wire-contract.md, 9): a fixed number of queries."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.db.models import Avg, Count, DurationField, ExpressionWrapper, F, Max, Q, Sum
from django.db.models.expressions import Combinable
from django.utils import timezone

from leaderboards.models import Run, Submission
from runners.states import ACTIVE

TOP_PEOPLE = 10
DAY = timedelta(days=1)


def read_stats(*, last_day: bool = False, leaderboard_name: str | None = None) -> dict[str, Any]:
    """Counts, and per GPU "num_run.B200" and the like; durations as ISO 8601 text.

    An unknown leaderboard has no submissions. What was deleted by its owner was run all the same,
    and counts.
    """
    submissions = Submission.objects.all()
    if leaderboard_name is not None:
        submissions = submissions.filter(
            # No database could be asked for a NUL, which no name has.
            leaderboard__name=leaderboard_name.lower().replace("\0", "?")
        )
    if last_day:
        submissions = submissions.filter(created_at__gt=timezone.now() - DAY)
    counted = submissions.aggregate(
        num_submissions=Count("pk"),
        num_users=Count("user", distinct=True),
        num_unique_codes=Count("source", distinct=True),
    )
    waiting = submissions.filter(passes__job__status__in=sorted(ACTIVE)).distinct().count()
    stats: dict[str, Any] = {
        "num_submissions": counted["num_submissions"],
        "sub_waiting": waiting,
        "num_users": counted["num_users"],
        **_of_gpus(submissions),
    }
    if last_day:
        return stats | _busiest(submissions)
    return stats | {"num_unique_codes": counted["num_unique_codes"]}


def _of_gpus(submissions: Any) -> dict[str, Any]:
    delay = _duration("started_at", "submission__created_at")
    of_gpu = (
        Run.objects.filter(submission__in=submissions)
        .order_by("gpu")
        .values("gpu")
        .annotate(
            num_run=Count("pk"),
            runs_passed=Count("pk", filter=Q(passed=True)),
            runs_scored=Count("pk", filter=Q(score__isnull=False)),
            runs_secret=Count("pk", filter=Q(secret=True)),
            max_delay=Max(delay, filter=Q(secret=False)),
            avg_delay=Avg(delay, filter=Q(secret=False)),
            total_runtime=Sum(_duration("finished_at", "started_at")),
        )
    )
    return {
        f"{name}.{row['gpu']}": iso_duration(value) if isinstance(value, timedelta) else value
        for row in of_gpu
        for name, value in row.items()
        if name != "gpu"
    }


def _duration(until: str, since: str) -> Combinable:
    return ExpressionWrapper(F(until) - F(since), output_field=DurationField())


def _busiest(submissions: Any) -> dict[str, int]:
    people = submissions.order_by().values("user__user_id").annotate(total=Count("pk"))
    top = people.order_by("-total", "user__user_id")[:TOP_PEOPLE]
    return {f"total.{row['user__user_id']}": row["total"] for row in top}


def iso_duration(value: timedelta) -> str:
    """ISO 8601 without the parts that are zero: PT5M12S, P1DT2H, PT14.2S."""
    sign, value = ("-", -value) if value < timedelta(0) else ("", value)
    minutes, seconds = divmod(value.seconds, 60)
    hours, minutes = divmod(minutes, 60)
    fraction = f".{value.microseconds:06}".rstrip("0").rstrip(".")
    date = f"{value.days}D" if value.days else ""
    time = f"{hours}H" * bool(hours) + f"{minutes}M" * bool(minutes)
    if seconds or fraction or not (date or time):
        time += f"{seconds}{fraction}S"
    return f"{sign}P{date}" + (f"T{time}" if time else "")
