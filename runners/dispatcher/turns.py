"""Work of which several dispatchers would do the same at once: a lease in the database for each."""

from __future__ import annotations

from datetime import timedelta

from django.db.models import Q
from django.utils import timezone

from runners.models import DispatcherTurn


def take_turn(name: str, token: str, seconds: float) -> bool:
    """Take it, or renew it under the same token; False while somebody else has it."""
    now = timezone.now()
    DispatcherTurn.objects.get_or_create(name=name, defaults={"until": now})
    span = timedelta(seconds=seconds)
    # One that is longer than any was taken by a clock that was ahead and has been set back.
    over = Q(until__lte=now) | Q(until__gt=now + 2 * span)
    free = DispatcherTurn.objects.filter(Q(token=token) | over, name=name)
    # One statement, in which the database itself looks and writes.
    return bool(free.update(token=token, until=now + span))


def end_turn(name: str, token: str) -> None:
    """Whoever comes next need not wait; harmless when it was lost already."""
    DispatcherTurn.objects.filter(name=name, token=token).update(token="", until=timezone.now())
