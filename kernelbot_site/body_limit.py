"""Reads every body under a size and a time limit, before Django would spool all of it.

Django's ASGI handler reads a whole body before any view runs. Here it is read first, and reading
stops at the limit: the view then knows the client and answers for it (leaderboards/api/uploads.py).
"""

from __future__ import annotations

import asyncio
from contextlib import suppress

from django.conf import settings

from kernelbot_site.asgi_types import App, Message, Receive, Scope, Send
from leaderboards.api.uploads import BODY_CUT, BodyCut

# The largest submission, and room for the form around it.
MAX_BODY_BYTES = settings.SUBMISSION_MAX_BYTES + 64 * 2**10
# A connection that is closed with bytes unread is reset, and the answer lost; so after the answer
# to a cut body a little more is taken, while the client reads it and stops.
LINGER_S = 1.0
LINGER_BYTES = 4 * 2**20


class LimitBody:
    """Leaves /operators/ alone, whose forms are behind a login and limited by Django."""

    def __init__(self, app: App) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"].startswith("/operators/"):
            await self.app(scope, receive, send)
            return
        try:
            body = await _read(scope, receive)
        except _Disconnected:
            return
        cut = body if isinstance(body, BodyCut) else None
        content = b"" if isinstance(body, BodyCut) else body
        scope = scope | {BODY_CUT: cut, "headers": _with_length(scope, len(content))}
        replay = _replay(content, receive, cut)
        del body, content  # a stream lives for an hour, and need not keep its upload
        await self.app(scope, replay, _lingering(receive, send) if cut else send)


class _Disconnected(Exception):
    pass


async def _read(scope: Scope, receive: Receive) -> bytes | BodyCut:
    """The body, or why it was cut. Raises _Disconnected when the client goes away."""
    if _declared_length(scope) > MAX_BODY_BYTES:
        return BodyCut.TOO_LARGE
    body = bytearray()
    try:
        async with asyncio.timeout(settings.UPLOAD_LIMIT_S):
            while True:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise _Disconnected
                body += message.get("body", b"")
                if len(body) > MAX_BODY_BYTES:
                    return BodyCut.TOO_LARGE
                if not message.get("more_body", False):
                    return bytes(body)
    except TimeoutError:
        return BodyCut.TOO_SLOW


def _declared_length(scope: Scope) -> int:
    declared = dict(scope["headers"]).get(b"content-length", b"0")
    return int(declared) if declared.isdigit() else 0


def _with_length(scope: Scope, length: int) -> list[tuple[bytes, bytes]]:
    """The headers, with the length that was read: Django takes a chunked body for an empty one."""
    framing = (b"content-length", b"transfer-encoding")
    kept = [(name, value) for name, value in scope["headers"] if name not in framing]
    return [*kept, (b"content-length", b"%d" % length)] if length else kept


def _replay(content: bytes, receive: Receive, cut: BodyCut | None) -> Receive:
    """Gives the body once. After a cut one it stays silent: what still comes is not wanted."""
    first: list[bytes] = [content]

    async def next_message() -> Message:
        if first:
            return {"type": "http.request", "body": first.pop(), "more_body": False}
        if cut:
            await asyncio.Event().wait()  # ends with the task
        return await receive()

    return next_message


def _lingering(receive: Receive, send: Send) -> Send:
    """Sends the answer, waits until the client has it, and then has the connection closed."""

    async def send_and_close(message: Message) -> None:
        if message["type"] == "http.response.start":
            message = message | {"headers": [*message["headers"], (b"connection", b"close")]}
        elif not message.get("more_body", False):
            await send(message | {"more_body": True})
            await _take_a_little(receive)
            message = {"type": "http.response.body"}
        await send(message)

    return send_and_close


async def _take_a_little(receive: Receive) -> None:
    taken = 0
    with suppress(TimeoutError):
        async with asyncio.timeout(LINGER_S):
            while taken < LINGER_BYTES:
                message = await receive()
                if message["type"] == "http.disconnect" or not message.get("more_body", False):
                    return
                taken += len(message.get("body", b""))
