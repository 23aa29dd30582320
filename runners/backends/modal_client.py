"""Modal's client, as much of it as a runner uses. The private names of modal 1.6.4 are all here.

A result is never read by `FunctionCall.get()`: that unpickles whatever the container says is a
pickle (docs/modal.md). The requirement pins modal to one version for the private names' sake.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Awaitable
from datetime import UTC, datetime
from typing import Any

# The client takes this from the environment alone: the first at its import, the others at use.
os.environ.setdefault("MODAL_CONFIG_PATH", os.devnull)  # no profile of whoever runs this
os.environ.setdefault("MODAL_MAX_THROTTLE_WAIT", "20")  # without it: for ever
os.environ["MODAL_PAYLOAD_FORMAT"] = "cbor"

import modal
import modal.types
from modal._utils.async_utils import synchronizer
from modal._utils.grpc_utils import Retry
from modal_proto import api_pb2

# A function of runners/modal_app.py: a config in, an envelope out.
type JobFunction = modal.Function[[bytes], bytes, bytes]

# Calls of one function that are looked at; the number that the client's own command line allows.
CALLS_TAIL = 500
# Long polls that share a connection. Servers bound the requests that one connection may have open,
# often at 100, and what is beyond waits unseen in the client; some room is left for other calls.
POLLS_PER_CONNECTION = 64
# A connection that was lost shows after the client's own attempts, which this outlasts.
CALL_LIMIT_S = 20.0


class ModalClient:
    """The calls that a runner makes, each under a deadline of ours. They raise as modal does."""

    def __init__(self, token_id: str, token_secret: str, *, app: str, environment: str) -> None:
        self.app = app
        self._environment = environment or None
        self._token = token_id, token_secret
        self._connections: list[_Connection] = []

    async def find_function(self, name: str) -> tuple[JobFunction, modal.types.FunctionInfo]:
        """The function as it is deployed now."""
        client = await self._client()
        function: JobFunction = modal.Function.from_name(
            self.app, name, environment_name=self._environment, client=client
        )
        return function, await _within(CALL_LIMIT_S, function.info.aio())

    async def app_tags(self) -> dict[str, str]:
        client = await self._client()
        app = await _within(
            CALL_LIMIT_S,
            modal.App.lookup.aio(self.app, client=client, environment_name=self._environment),
        )
        return await _within(CALL_LIMIT_S, app.get_tags.aio(client=client))

    async def spawn(self, function: JobFunction, argument: bytes) -> str:
        """Queue a call and return its id; no deadline but the caller's."""
        call = await function.spawn.aio(argument)
        return str(call.object_id)

    async def outputs(self, call_id: str, wait_s: float) -> api_pb2.FunctionGetOutputsResponse:
        """What there is of a call after at most `wait_s`; nothing in it was decoded."""
        connection = self._connection_with_room()
        connection.polls += 1
        try:
            client = await connection.client()
            return await _within(wait_s + CALL_LIMIT_S, _outputs.aio(client, call_id, wait_s))
        finally:
            connection.polls -= 1

    async def blob_url(self, blob_id: str) -> str:
        client = await self._client()
        return await _within(CALL_LIMIT_S, _blob_url.aio(client, blob_id))

    async def calls(self, function: JobFunction) -> list[api_pb2.FunctionCallInputInfo]:
        """The newest calls of a function, newest first, at most CALLS_TAIL."""
        client = await self._client()
        return await _within(CALL_LIMIT_S, _calls.aio(client, function.object_id))

    async def backlog(self, function: JobFunction) -> int:
        stats = await _within(CALL_LIMIT_S, function.get_current_stats.aio())
        return int(stats.backlog)

    async def cancel(self, call_id: str) -> None:
        client = await self._client()
        call = modal.FunctionCall.from_id(call_id, client=client)
        await _within(CALL_LIMIT_S, call.cancel.aio(terminate_containers=True))

    async def close(self) -> None:
        for connection in self._connections:
            await connection.close()
        self._connections.clear()

    async def _client(self) -> modal.Client:
        if not self._connections:
            self._connections.append(_Connection(self._token))
        return await self._connections[0].client()

    def _connection_with_room(self) -> _Connection:
        for connection in self._connections:
            if connection.polls < POLLS_PER_CONNECTION:
                return connection
        self._connections.append(_Connection(self._token))
        return self._connections[-1]


class _Connection:
    """One client, and the number of its long polls."""

    def __init__(self, token: tuple[str, str]) -> None:
        self.polls = 0
        self._token = token
        self._connecting: asyncio.Task[modal.Client] | None = None

    async def client(self) -> modal.Client:
        """The connected client. An attempt to connect goes on when whoever began it gave up."""
        if self._connecting is None or _failed(self._connecting):
            connect = modal.Client.from_credentials.aio(*self._token)
            self._connecting = asyncio.create_task(connect)
        return await _within(CALL_LIMIT_S, asyncio.shield(self._connecting))

    async def close(self) -> None:
        if self._connecting is not None and not _failed(self._connecting):
            await (await self._connecting).close.aio()
        self._connecting = None


def _failed(task: asyncio.Task[modal.Client]) -> bool:
    return task.done() and (task.cancelled() or task.exception() is not None)


async def _within[T](seconds: float, call: Awaitable[T]) -> T:
    """Raises TimeoutError. The client's own timeouts do not cover a network that froze."""
    async with asyncio.timeout(seconds):
        return await call


def enqueued_at(info: api_pb2.FunctionCallInputInfo) -> datetime:
    made: datetime = info.enqueued_at.ToDatetime(UTC)
    return made


# These run on the client's own event loop, where its connection lives.


@synchronizer.create_blocking
async def _outputs(client: Any, call_id: str, wait_s: float) -> api_pb2.FunctionGetOutputsResponse:
    request = api_pb2.FunctionGetOutputsRequest(
        function_call_id=call_id,
        timeout=wait_s,
        last_entry_id="0-0",
        requested_at=time.time(),
        start_idx=0,
        end_idx=0,
    )
    retry = Retry(max_retries=2, attempt_timeout=wait_s + 5, total_timeout=wait_s + CALL_LIMIT_S)
    answer: api_pb2.FunctionGetOutputsResponse
    answer = await client._stub.FunctionGetOutputs(request, retry=retry)
    return answer


@synchronizer.create_blocking
async def _blob_url(client: Any, blob_id: str) -> str:
    answer = await client._stub.BlobGet(api_pb2.BlobGetRequest(blob_id=blob_id))
    return str(answer.download_url)


@synchronizer.create_blocking
async def _calls(client: Any, function_id: str) -> list[api_pb2.FunctionCallInputInfo]:
    tail = api_pb2.FunctionCallFetchRequest.Tail(count=CALLS_TAIL)
    request = api_pb2.FunctionCallFetchRequest(function_id=function_id, tail=tail)
    answer = await client._stub.FunctionCallFetch(request)
    return list(answer.function_call_inputs)
