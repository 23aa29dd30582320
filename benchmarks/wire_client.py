"""A client that sends profile requests as popcorn-cli does and keeps nothing of the answers.

It works against any server that speaks the wire contract, so that two can be compared.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

PIECE_BYTES = 2**18
NAMES = ("result", "error")
PART = b'--x\r\nContent-Disposition: form-data; name="%b"%b\r\n\r\n%b\r\n'


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A server, and what its wire needs to accept a profile request."""

    url: str
    cli_id: str
    leaderboard: str
    gpu: str
    submission: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """`last` is "result", "error" or "" (the stream was cut, or there was none); times are seconds."""

    status: int
    last: str
    size: int
    seconds: float


class OpenStream:
    """A request that was sent. `first_byte_s` stays None until something came back."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._sent = time.perf_counter()
        self.first_byte_s: float | None = None

    async def read_to_end(self) -> Answer:
        size, status, last, before = 0, 0, "", b""
        try:
            while piece := await self._reader.read(PIECE_BYTES):
                if not size:
                    self.first_byte_s = time.perf_counter() - self._sent
                    status = int(piece.split(b" ", 2)[1])
                size += len(piece)
                seen = before + piece
                last = next((name for name in NAMES if f"event: {name}\n".encode() in seen), last)
                before = piece[-16:]
        except OSError:  # cut by the server: what came is told
            last = ""
        finally:
            self._writer.close()
        return Answer(status=status, last=last, size=size, seconds=time.perf_counter() - self._sent)


async def open_profile(target: Target) -> OpenStream:
    body = PART % (b"file", b'; filename="submission.py"', target.submission)
    body += PART % (b"benchmark_index", b"", b"0") + b"--x--\r\n"
    kind = f"Content-Type: multipart/form-data; boundary=x\r\nContent-Length: {len(body)}\r\n"
    path = f"/profile/{target.leaderboard}/{target.gpu}"
    return await _send(target, "POST", path, kind, body)


async def open_get(target: Target, path: str) -> OpenStream:
    return await _send(target, "GET", path, "", b"")


async def _send(target: Target, method: str, path: str, more: str, body: bytes) -> OpenStream:
    parts = urlsplit(target.url)
    is_https = parts.scheme == "https"
    port = parts.port or (443 if is_https else 80)
    reader, writer = await asyncio.open_connection(
        parts.hostname, port, ssl=is_https or None, limit=2**20
    )
    head = (
        f"{method} {parts.path.rstrip('/')}{path} HTTP/1.1\r\nHost: {parts.netloc}\r\n"
        f"X-Popcorn-Cli-Id: {target.cli_id}\r\nAccept: */*\r\nConnection: close\r\n{more}\r\n"
    )
    opened = OpenStream(reader, writer)
    writer.write(head.encode("latin-1") + body)
    await writer.drain()
    return opened


def spread(seconds: Sequence[float]) -> dict[str, Any]:
    """Milliseconds: `p50_ms`, `p99_ms` (nearest rank) and `max_ms`."""
    ranked = sorted(seconds)

    def rank(share: float) -> float:
        return round(ranked[math.ceil(share * len(ranked)) - 1] * 1000, 1)

    return {"p50_ms": rank(0.5), "p99_ms": rank(0.99), "max_ms": rank(1)}
