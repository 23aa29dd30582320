"""How a method of the fake becomes a gRPC method: tokens, faults, a log of requests."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from dataclasses import dataclass, field

from google.protobuf import json_format, message_factory
from grpclib import GRPCError, Status
from grpclib.const import Cardinality, Handler
from modal._utils.grpc_utils import CustomProtoStatusDetailsCodec
from modal_proto import api_pb2

SERVICE = api_pb2.DESCRIPTOR.services_by_name["ModalClient"]
status_codec = CustomProtoStatusDetailsCodec()


@dataclass(kw_only=True)
class Fault:
    """`status` is the name of a gRPC status; `after` lets the method do its work first.

    `times` < 0 is for ever; `retry_after_s` asks the client to come back, as Modal throttles;
    `delay_s` is how long it takes; a `held` one takes until the faults are cleared.
    """

    rpc: str
    status: str = ""
    text: str = "a planned fault"
    times: int = 1
    retry_after_s: float | None = None
    after: bool = False
    delay_s: float = 0
    held: bool = False
    cleared: asyncio.Event = field(default_factory=asyncio.Event)

    async def strike(self) -> None:
        await asyncio.sleep(self.delay_s)
        if self.held:
            await self.cleared.wait()
        if self.status:
            raise self._error()

    def _error(self) -> GRPCError:
        details = None
        if self.retry_after_s is not None:
            details = [api_pb2.RPCRetryPolicy(retry_after_secs=self.retry_after_s)]
        return GRPCError(Status[self.status], self.text, details)


class Rpcs:
    """The base of the control plane: its public coroutines are the methods of the service."""

    def __init__(self, token: tuple[str, str]) -> None:
        self.token = token
        self.faults: list[Fault] = []
        self.counts: Counter[str] = Counter()
        self.requests: list[dict] = []

    def __mapping__(self):
        table = {}
        for method in SERVICE.methods:
            implementation = getattr(self, method.name, None)
            if implementation is None:
                continue  # grpclib answers UNIMPLEMENTED
            request, response = (
                message_factory.GetMessageClass(t) for t in (method.input_type, method.output_type)
            )
            table[f"/{SERVICE.full_name}/{method.name}"] = Handler(
                self._caller(method.name, implementation, response),
                Cardinality.UNARY_UNARY,
                request,
                response,
            )
        return table

    def _caller(self, name, implementation, response):
        async def call(stream):
            message = await stream.recv_message()
            metadata = dict(stream.metadata)
            self._note(name, message, metadata)
            self._authenticate(metadata)
            fault = self._next_fault(name)
            if fault and not fault.after:
                await fault.strike()
            answer = await implementation(message, metadata)
            if fault and fault.after:
                await fault.strike()
            await stream.send_message(answer or response())

        return call

    def _note(self, name, message, metadata) -> None:
        self.counts[name] += 1
        if name in ("FunctionCreate", "ImageGetOrCreate", "MountGetOrCreate", "AppPublish"):
            self.requests.append(
                {"rpc": name, "at": time.time(), "message": json_format.MessageToDict(message)}
            )

    def _authenticate(self, metadata) -> None:
        if metadata.get("x-modal-client-type") == str(api_pb2.CLIENT_TYPE_CONTAINER):
            return
        given = metadata.get("x-modal-token-id"), metadata.get("x-modal-token-secret")
        if given != self.token:
            raise GRPCError(Status.UNAUTHENTICATED, "token is not valid")

    def clear_faults(self) -> None:
        for fault in self.faults:
            fault.cleared.set()
        self.faults.clear()

    def _next_fault(self, name: str) -> Fault | None:
        for fault in self.faults:
            if fault.rpc == name and fault.times:
                fault.times -= 1
                return fault
        return None
