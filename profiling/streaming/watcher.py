"""One task per web process asks the database for all streams, and wakes those with news.

Where jobs ring (runners/bell.py), one that did is looked at at once; all of them regularly.

A stream holds no thread and no connection, and the cost of asking does not grow with the number of
clients that wait (FR-29).
"""

from __future__ import annotations

import asyncio
import contextvars
import logging
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from uuid import UUID

from django.conf import settings
from django.db import connection

from profiling.streaming.news import JobNews, read_news
from runners.bell import hear

log = logging.getLogger(__name__)
MAX_PAUSE_S = 10.0


class Feed:
    """The news of one job for one stream."""

    def __init__(self, job_id: UUID, news: JobNews) -> None:
        self.job_id = job_id
        self.news = news
        self._changed = asyncio.Event()

    def update(self, news: JobNews) -> None:
        if news != self.news:
            self.news = news
            self._changed.set()

    async def wait(self, timeout_s: float) -> None:
        """Return when there is news, or after the time."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._changed.wait(), timeout_s)
        self._changed.clear()


class Watcher:
    """Lives on one event loop; its task runs only while somebody follows a job."""

    def __init__(self) -> None:
        self._feeds: set[Feed] = set()
        self._changed: set[UUID] = set()
        self._bell: asyncio.Event  # of the loop that the task runs on
        self._look_at_all_at = 0.0
        self._task: asyncio.Task[None] | None = None
        # A thread of its own: that of the request which came first would end with the request.
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="watcher")

    @contextmanager
    def follow(self, job_id: UUID, news: JobNews) -> Iterator[Feed]:
        """A feed that is kept up to date inside the block; `news` is what is known already."""
        feed = Feed(job_id, news)
        self._feeds.add(feed)
        if self._task is None or self._task.done():
            self._bell = asyncio.Event()
            # In an empty context, so that nothing of this request lives on in the task.
            self._task = asyncio.get_running_loop().create_task(
                self._watch(), name="watcher", context=contextvars.Context()
            )
        try:
            yield feed
        finally:
            self._feeds.discard(feed)
            if not self._feeds:
                self._bell.set()  # the task need not wait any longer

    async def _watch(self) -> None:
        loop = asyncio.get_running_loop()
        hearing = loop.create_task(hear(self._ring))
        try:
            while self._feeds:
                await self._tell_news_while_followed()
                # Somebody may begin to follow while the connection is closed; then it goes on.
                await loop.run_in_executor(self._thread, _close)
        finally:
            hearing.cancel()

    def _ring(self, job_id: UUID | None) -> None:
        if job_id is None:
            self._look_at_all_at = 0.0
        elif any(feed.job_id == job_id for feed in self._feeds):
            self._changed.add(job_id)
        else:
            return
        self._bell.set()

    async def _tell_news_while_followed(self) -> None:
        loop = asyncio.get_running_loop()
        failures = 0
        self._look_at_all_at = time.monotonic() + settings.WATCH_EVERY_S
        while self._feeds:
            job_ids = await self._wait_for_jobs()
            try:
                found = await loop.run_in_executor(self._thread, _read, job_ids)
            except Exception:
                # Whatever it is, the streams live on and hear of it later.
                failures = min(failures + 1, 10)
                log.exception("the watcher could not read its jobs, it tries again")
                await asyncio.sleep(min(settings.WATCH_EVERY_S * 2**failures, MAX_PAUSE_S))
                self._look_at_all_at = 0.0
                continue
            failures = 0
            for feed in list(self._feeds):
                if feed.job_id in found:
                    feed.update(found[feed.job_id])

    async def _wait_for_jobs(self) -> set[UUID]:
        """Those that rang, or all when it is time to look at all."""
        with suppress(TimeoutError):
            pause = max(self._look_at_all_at - time.monotonic(), 0)
            await asyncio.wait_for(self._bell.wait(), pause)
        self._bell.clear()
        changed, self._changed = self._changed, set()
        if time.monotonic() < self._look_at_all_at:
            return changed
        self._look_at_all_at = time.monotonic() + settings.WATCH_EVERY_S
        return {feed.job_id for feed in self._feeds}


def _read(job_ids: set[UUID]) -> dict[UUID, JobNews]:
    try:
        return read_news(job_ids)
    except Exception:
        _close()  # the next try begins with a new one
        raise


def _close() -> None:
    """The connection of the thread that calls this: each thread has its own."""
    connection.close()


watcher = Watcher()
