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
    free = DispatcherTurn.objects.filter(Q(token=token) | Q(until__lte=now), name=name)
    # One statement, in which the database itself looks and writes.
    return bool(free.update(token=token, until=now + timedelta(seconds=seconds)))


def end_turn(name: str, token: str) -> None:
    """Whoever comes next need not wait; harmless when it was lost already."""
    DispatcherTurn.objects.filter(name=name, token=token).update(token="", until=timezone.now())
