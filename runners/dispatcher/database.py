"""Synchronous code, database calls above all, called from the dispatcher's event loop."""

from __future__ import annotations

import functools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from asgiref.sync import sync_to_async
from django.db import close_old_connections


class Threads:
    """Runs functions in threads of its own, and leaves no stale database connection in them.

    Before `open` they run in the caller's main thread instead, and so in the transaction of a test.
    """

    def __init__(self) -> None:
        self._pool: ThreadPoolExecutor | None = None

    def open(self, name: str, count: int) -> None:
        self._pool = ThreadPoolExecutor(count, thread_name_prefix=name)

    def close(self) -> None:
        """Drop what waits; what runs is not waited for."""
        assert self._pool is not None
        self._pool.shutdown(wait=False, cancel_futures=True)

    async def __call__[**P, T](
        self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        if self._pool is None:
            return await sync_to_async(function)(*args, **kwargs)
        call = sync_to_async(_with_fresh_connection, thread_sensitive=False, executor=self._pool)
        return await call(functools.partial(function, *args, **kwargs))


def _with_fresh_connection[T](function: Callable[[], T]) -> T:
    close_old_connections()
    try:
        return function()
    finally:
        close_old_connections()
