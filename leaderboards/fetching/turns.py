"""One sync from a repository at a time, over all web processes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django.conf import settings
from django.core.cache import cache

from leaderboards.fetching.exceptions import SyncRunning

_KEY = "problem-sync"
# For reading and writing what was fetched; a process that dies leaves its turn to run out.
_SYNC_S = 120


@contextmanager
def one_at_a_time() -> Iterator[None]:
    """Raises SyncRunning. Kept in the cache, which web processes share (kernelbot_site.E001).

    It bounds the load and nothing else: two syncs at once would both be right, each problem being
    a transaction that locks its leaderboard.
    """
    limit_s = settings.PROBLEM_FETCH_LIMIT_S + _SYNC_S
    if not cache.add(_KEY, True, timeout=limit_s):
        raise SyncRunning("problems are being synced just now: try again when that has ended")
    try:
        yield
    finally:
        cache.delete(_KEY)
