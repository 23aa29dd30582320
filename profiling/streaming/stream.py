"""The event stream of one request: status … status, then exactly one result or error."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from uuid import UUID

from asgiref.sync import sync_to_async
from django.conf import settings
from django.db import Error as DatabaseError
from django.db import connection

from profiling.streaming.endings import Ending
from profiling.streaming.events import error_frame, frame
from profiling.streaming.news import JobNews
from profiling.streaming.watcher import watcher
from profiling.wire_result import DamagedArtifact, WireResult
from runners.exceptions import ServiceError

log = logging.getLogger(__name__)
ENDING_TRIES = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """What a stream is about: `id` and `noun` are for people, `read_ending` is synchronous."""

    id: str
    noun: str
    take_up_at: str
    read_ending: Callable[[], Ending]


class Stream:
    """Holds no database connection while it waits, and ends with the connection of its client.

    `job_id` and `news` are of the subject's job, as they were when the stream was asked for.
    """

    def __init__(self, subject: Subject, job_id: UUID, news: JobNews) -> None:
        self.subject, self.job_id, self.news = subject, job_id, news
        self._started = time.monotonic()

    async def events(self) -> AsyncIterator[bytes]:
        yield self._status(self.news)
        job: tuple[UUID, JobNews] | None = (self.job_id, self.news)
        while job is not None:
            with watcher.follow(*job) as feed:
                while not feed.news.is_final:
                    left = settings.STREAM_LIMIT_S - self._elapsed()
                    if left <= 0:
                        yield self._gave_up()
                        return
                    await feed.wait(min(settings.STREAM_STATUS_EVERY_S, left))
                    yield self._status(feed.news)
            try:
                ending = await self._read_ending()
            except Exception:
                log.exception("the end of stream %s cannot be told", self.subject.id)
                yield self._our_fault("the result cannot be read just now")
                return
            job = ending.follows
        async for piece in self._last_events(feed.news, ending):
            yield piece

    async def _last_events(self, news: JobNews, ending: Ending) -> AsyncIterator[bytes]:
        for message in ending.messages:
            yield self._status(news, message)
        if ending.error is not None:
            yield error_frame(**ending.error, request_id=self.subject.id)
        elif ending.result is not None:
            async for piece in self._result(ending.result):
                yield piece

    async def _read_ending(self) -> Ending:
        """A database that is away for some seconds does not cost anybody their result."""
        for pause in range(ENDING_TRIES - 1):
            try:
                return await sync_to_async(_read_and_close)(self.subject.read_ending)
            except DatabaseError:
                log.warning("the end of stream %s is read again", self.subject.id)
                await asyncio.sleep(2**pause * settings.WATCH_EVERY_S)
        return await sync_to_async(_read_and_close)(self.subject.read_ending)

    async def _result(self, result: WireResult) -> AsyncIterator[bytes]:
        """One frame, in pieces. The client takes the last event and data line of a frame, so a
        file that fails in the middle still ends as an error and not as half a result."""
        yield b"event: result\ndata: "
        try:
            async for piece in result.pieces():
                yield piece
        except (ServiceError, DamagedArtifact, OSError) as error:
            log.exception("%s: a stored file cannot be sent", self.subject.id)
            words = str(error) if isinstance(error, ServiceError) else "a stored file is damaged"
            yield b"\n" + self._our_fault(f"the {self.subject.noun} was made, but {words}")
        else:
            yield b"\n\n"

    def _status(self, news: JobNews, message: str = "") -> bytes:
        return frame(
            "status",
            {
                "status": "processing",
                "elapsed_time": round(self._elapsed(), 2),
                "message": message or news.message,
                "job_status": news.status.value,
                "queue_position": news.queue_position,
                "phase": news.phase,
                "request_id": self.subject.id,
            },
        )

    def _gave_up(self) -> bytes:
        detail = (
            f"the stream ends here, the {self.subject.noun} goes on. Take it up again, or read the "
            f"result later, at {self.subject.take_up_at}"
        )
        return self._error(detail, 504, "stream_limit")

    def _our_fault(self, what: str) -> bytes:
        detail = (
            f"{what}; nothing is wrong with the submission. Try again at {self.subject.take_up_at}"
        )
        return self._error(detail, 503, "result_unavailable")

    def _error(self, detail: str, status_code: int, code: str) -> bytes:
        return error_frame(
            detail,
            status_code=status_code,
            code=code,
            request_id=self.subject.id,
            stream_url=self.subject.take_up_at,
        )

    def _elapsed(self) -> float:
        return time.monotonic() - self._started


def _read_and_close(read_ending: Callable[[], Ending]) -> Ending:
    """A large result is sent for minutes, and needs no connection any more."""
    try:
        return read_ending()
    finally:
        connection.close()
