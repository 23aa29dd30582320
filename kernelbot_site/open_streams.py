"""How many event streams are open, in all web processes of this machine.

A scrape reaches one process of several, so each keeps its count in a file that it locks. The lock
ends with its process, whatever ended that: a file that can be locked is of nobody, and is removed.
"""

from __future__ import annotations

import fcntl
import os
from contextlib import suppress
from pathlib import Path

from django.conf import settings

from kernelbot_site.asgi_types import App, Message, Receive, Scope, Send

_WIDTH = 8


def folder() -> Path:
    path: Path = settings.DATA_DIR / "open-streams"
    return path


class CountStreams:
    """Counts the answers that are event streams, from their first byte to their end."""

    def __init__(self, app: App) -> None:
        self.app = app
        self._open = 0
        self._file: int | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        counted = False

        async def send_counted(message: Message) -> None:
            nonlocal counted
            if message["type"] == "http.response.start" and _is_stream(message):
                counted = True
                self._add(1)
            await send(message)

        try:
            await self.app(scope, receive, send_counted)
        finally:
            if counted:
                self._add(-1)

    def _add(self, change: int) -> None:
        self._open += change
        if self._file is None:
            folder().mkdir(parents=True, exist_ok=True)
            path = folder() / str(os.getpid())
            self._file = os.open(path, os.O_CREAT | os.O_RDWR, 0o600)
            fcntl.flock(self._file, fcntl.LOCK_EX)
        os.pwrite(self._file, b"%*d" % (_WIDTH, self._open), 0)


def _is_stream(message: Message) -> bool:
    return any(
        name.lower() == b"content-type" and value.startswith(b"text/event-stream")
        for name, value in message["headers"]
    )


def count_streams() -> int:
    """The sum of all processes that live."""
    if not folder().is_dir():
        return 0
    return sum(_read_or_remove(path) for path in folder().iterdir())


def _read_or_remove(path: Path) -> int:
    with suppress(FileNotFoundError), path.open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return int(file.read(_WIDTH) or 0)
        path.unlink()
    return 0
