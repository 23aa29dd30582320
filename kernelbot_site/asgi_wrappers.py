"""Small ASGI wrappers around Django, one duty each; asgi.py puts them together."""

from __future__ import annotations

import itertools
import json
import re
import uuid
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from asgiref.sync import ThreadSensitiveContext, sync_to_async
from django.db import close_old_connections

from kernelbot_site.asgi_types import App, Message, Receive, Scope, Send
from kernelbot_site.logs import current_request_id
from leaderboards.api.context import REQUEST_ID

# The Brev protocol asks here which options it may send (wire-contract.md, 6.7).
CAPTURE_OPTIONS = ["ncu_kernel_name", "ncu_kernel_name_base", "ncu_launch_count"]
HEALTHY: dict[str, Any] = {
    "status": "ok",
    "capabilities": {"request_capture_options": CAPTURE_OPTIONS},
}


class NameRequests:
    """Gives every request an id, which the audit trail and the answer (X-Request-Id) carry."""

    def __init__(self, app: App) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request_id = uuid.uuid4().hex

        async def send_named(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = [*message["headers"], (b"x-request-id", request_id.encode())]
                message = message | {"headers": headers}
            await send(message)

        current_request_id.set(request_id)  # each request has a task, and so a context, of its own
        await self.app(scope | {REQUEST_ID: request_id}, receive, send_named)


class CollapseSlashes:
    """`//path` is `/path`: a base URL with a slash at its end (wire-contract.md, 1.1)."""

    def __init__(self, app: App) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if "//" in scope.get("path", ""):
            scope = scope | {
                "path": re.sub("//+", "/", scope["path"]),
                "raw_path": re.sub(b"//+", b"/", scope.get("raw_path") or b""),
            }
        await self.app(scope, receive, send)


class AnswerHealth:
    """GET /health, without a thread or a database: whatever else is stuck, it answers (FR-29)."""

    def __init__(self, app: App) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope.get("path") != "/health":
            await self.app(scope, receive, send)
            return
        status, answer = 200, HEALTHY
        if scope["method"] not in ("GET", "HEAD"):
            status = 405
            answer = {"detail": "only GET is answered here", "code": "bad_method"}
        body = json.dumps(answer).encode()
        headers = [
            (b"content-type", b"application/json"),
            (b"content-length", b"%d" % len(body)),
            (b"cache-control", b"no-store"),
        ]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body})


class ShareThreads:
    """Runs synchronous code of all requests on a few threads, each request staying on one.

    Left alone, Django keeps a thread and its database connection for every request until it ends,
    and a stream ends after minutes (FR-29). Views take milliseconds, so a few threads carry them.
    """

    def __init__(self, app: App, threads: int) -> None:
        self.app = app
        self.threads = itertools.cycle(
            [ThreadPoolExecutor(1, thread_name_prefix=f"views-{n}") for n in range(threads)]
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        released = False

        async def send_released(message: Message) -> None:
            """Before the first piece of several, the thread's connection is given back: else it is
            kept as long as the client reads, and eight streams use up a pool of eight."""
            nonlocal released
            if message.get("more_body") and not released:
                released = True
                await sync_to_async(close_old_connections)()
            await send(message)

        async with ThreadSensitiveContext(executor=next(self.threads)):
            await self.app(scope, receive, send_released)
