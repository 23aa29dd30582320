"""The RPCs of modal.client.ModalClient that look-up, calls, results and containers need."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from google.protobuf import json_format
from google.protobuf.timestamp_pb2 import Timestamp
from grpclib import GRPCError, Status
from modal_proto import api_pb2

from tests.fake_modal.deploying import Deploying
from tests.fake_modal.state import Call, Deployed, State

LONG_POLL_MAX_S = 55
RESULT = api_pb2.GenericResult


class ControlPlane(Deploying):
    """`on_call` is told of each new call and of each cancelled one."""

    def __init__(self, token: tuple[str, str], state: State, blob_url: str) -> None:
        super().__init__(token, state, blob_url)
        self.changed: dict[str, asyncio.Event] = {}
        self.on_call: Callable[[Call], None] = lambda _: None
        self.on_cancel: Callable[[Call], None] = lambda _: None

    # --- Look-up, calls and results ---

    async def FunctionGet(self, message, _):
        deployed = self.state.find_function(message.app_name, message.object_tag)
        if deployed is None:
            raise GRPCError(Status.NOT_FOUND, f"no function {message.object_tag!r} is deployed")
        return api_pb2.FunctionGetResponse(
            function_id=deployed.id,
            handle_metadata=self.handle_metadata(deployed),
            function=deployed.function_data(),
        )

    async def FunctionMap(self, message, metadata):
        function = self.state.functions.get(message.function_id)
        if function is None:
            raise GRPCError(Status.NOT_FOUND, "no such function")
        seen = len(self.state.calls)
        call = self.state.new_call(
            function.id, message.pipelined_inputs[0].input, metadata.get("x-idempotency-key", "")
        )
        if len(self.state.calls) > seen:
            self.on_call(call)
        return api_pb2.FunctionMapResponse(
            function_call_id=call.id,
            pipelined_inputs=[
                api_pb2.FunctionPutInputsResponseItem(idx=0, input_id=call.input_id, input_jwt="j")
            ],
        )

    async def FunctionGetOutputs(self, message, _):
        call = self.known_call(message.function_call_id)
        if call.expired:
            return api_pb2.FunctionGetOutputsResponse(num_unfinished_inputs=0)
        if call.output is None and message.timeout > 0:
            await self._news(call, min(message.timeout, LONG_POLL_MAX_S))
        item = call.output_item()
        if item is None:
            return api_pb2.FunctionGetOutputsResponse(num_unfinished_inputs=1)
        return api_pb2.FunctionGetOutputsResponse(outputs=[item], idxs=[0])

    async def FunctionCallCancel(self, message, _):
        call = self.known_call(message.function_call_id)
        call.cancelled = True
        call.terminated_containers |= message.terminate_containers
        if call.output is None:
            self.finish(call, {"result": {"status": "GENERIC_STATUS_TERMINATED"}})
        self.on_cancel(call)

    async def FunctionGetCurrentStats(self, message, _):
        mine = [c for c in self.state.calls.values() if c.function_id == message.function_id]
        running = sum(1 for c in mine if c.started_at and c.output is None)
        waiting = sum(1 for c in mine if not c.started_at and c.output is None)
        return api_pb2.FunctionStats(
            backlog=waiting, num_total_tasks=running, num_running_inputs=running
        )

    async def FunctionCallFetch(self, message, _):
        mine = [c for c in self.state.calls.values() if c.function_id == message.function_id]
        mine.sort(key=lambda call: -call.enqueued_at)
        return api_pb2.FunctionCallFetchResponse(
            function_call_inputs=[_call_info(call) for call in mine[: message.tail.count]]
        )

    # --- Blobs: bytes go over HTTP ---

    async def BlobGet(self, message, _):
        if not self.state.blob(message.blob_id + ".json").exists():
            raise GRPCError(Status.NOT_FOUND, "no such blob")
        return api_pb2.BlobGetResponse(download_url=f"{self.blob_url}/blob/{message.blob_id}")

    # --- What a container calls ---

    async def ContainerHello(self, message, metadata):
        return None

    async def ContainerHeartbeat(self, message, metadata):
        return None

    async def TaskResult(self, message, metadata):
        """A container that could not start: Modal makes failures of its inputs in the end."""
        for call in self.calls_of_task(metadata):
            if call.output is None:
                result = json_format.MessageToDict(message.result)
                result["status"] = "GENERIC_STATUS_INIT_FAILURE"
                self.finish(call, {"result": result})

    async def FunctionGetInputs(self, message, metadata):
        for call in self.calls_of_task(metadata):
            if call.output is None:
                call.started_at = time.time()
                self.state.save(call)
                item = json_format.ParseDict(call.input, api_pb2.FunctionInput())
                return api_pb2.FunctionGetInputsResponse(
                    inputs=[
                        api_pb2.FunctionGetInputsItem(
                            input_id=call.input_id,
                            input=item,
                            function_call_id=call.id,
                            function_call_invocation_type=(
                                api_pb2.FUNCTION_CALL_INVOCATION_TYPE_ASYNC
                            ),
                        )
                    ]
                )
        return api_pb2.FunctionGetInputsResponse(
            inputs=[api_pb2.FunctionGetInputsItem(kill_switch=True)]
        )

    async def FunctionPutOutputs(self, message, metadata):
        for put in message.outputs:
            call = self.known_call(put.function_call_id or put.input_id.replace("in-", "fc-"))
            if call.output is None:
                item = api_pb2.FunctionGetOutputsItem(
                    result=put.result,
                    data_format=put.data_format,
                    input_id=put.input_id,
                    task_id=metadata.get("x-modal-task-id", ""),
                    input_started_at=put.input_started_at,
                    output_created_at=put.output_created_at,
                )
                self.finish(call, json_format.MessageToDict(item))

    def calls_of_task(self, metadata) -> list[Call]:
        """A container runs one call; its task id names it."""
        task = metadata.get("x-modal-task-id", "").replace("ta-", "fc-")
        return [self.state.calls[task]] if task in self.state.calls else []

    # --- Shared ---

    def known_call(self, call_id: str) -> Call:
        if call_id not in self.state.calls:
            raise GRPCError(Status.NOT_FOUND, f"no function call {call_id!r}")
        return self.state.calls[call_id]

    def finish(self, call: Call, output: dict) -> None:
        call.output, call.ended_at = output, time.time()
        self.state.save(call)
        if event := self.changed.pop(call.id, None):
            event.set()

    async def _news(self, call: Call, wait_s: float) -> None:
        event = self.changed.setdefault(call.id, asyncio.Event())
        try:
            async with asyncio.timeout(wait_s):
                await event.wait()
        except TimeoutError:
            pass

    def handle_metadata(self, deployed: Deployed) -> api_pb2.FunctionHandleMetadata:
        app = self.state.find_app(deployed.app)
        return api_pb2.FunctionHandleMetadata(
            function_name=deployed.name,
            function_type=api_pb2.Function.FUNCTION_TYPE_FUNCTION,
            definition_id="de-" + deployed.id,
            app_id=app.id if app else "",
            supported_input_formats=[api_pb2.DATA_FORMAT_PICKLE, api_pb2.DATA_FORMAT_CBOR],
            supported_output_formats=deployed.function_data().supported_output_formats,
        )


def _call_info(call: Call) -> api_pb2.FunctionCallInputInfo:
    info = api_pb2.FunctionCallInputInfo(
        function_call_id=call.id, enqueued_at=_timestamp(call.enqueued_at), status=call.status()
    )
    if call.started_at:
        info.started_at.CopyFrom(_timestamp(call.started_at))
    return info


def _timestamp(seconds: float) -> Timestamp:
    made = Timestamp()
    made.FromNanoseconds(int(seconds * 1e9))
    return made
