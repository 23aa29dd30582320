"""The RPCs that `modal deploy` calls."""

from __future__ import annotations

import hashlib
import time
import uuid

from google.protobuf import json_format
from google.protobuf.timestamp_pb2 import Timestamp
from grpclib import GRPCError, Status
from modal_proto import api_pb2

from tests.fake_modal.rpc import Rpcs
from tests.fake_modal.state import App, Deployed, State


class Deploying(Rpcs):
    def __init__(self, token: tuple[str, str], state: State, blob_url: str) -> None:
        super().__init__(token)
        self.state = state
        self.blob_url = blob_url
        self.precreated: dict[tuple[str, str], str] = {}

    def reset(self) -> None:
        """Forget all that was deployed, called and asked."""
        self.faults.clear()
        self.counts.clear()
        self.requests.clear()
        self.precreated.clear()
        self.state.forget()

    async def EnvironmentGetOrCreate(self, message, _):
        return api_pb2.EnvironmentGetOrCreateResponse(
            environment_id="en-1",
            metadata=api_pb2.EnvironmentMetadata(
                name=message.deployment_name or "main",
                # Containers of older builders lack the CBOR library.
                settings=api_pb2.EnvironmentSettings(image_builder_version="2025.06"),
            ),
        )

    async def AppGetByDeploymentName(self, message, _):
        app = self.state.find_app(message.name)
        return api_pb2.AppGetByDeploymentNameResponse(app_id=app.id if app else "")

    async def AppGetLayout(self, message, _):
        return api_pb2.AppGetLayoutResponse(app_layout=api_pb2.AppLayout())

    async def AppGetOrCreate(self, message, _):
        app = self.state.find_app(message.app_name)
        if app is None:
            raise GRPCError(Status.NOT_FOUND, f"no app {message.app_name!r}")
        return api_pb2.AppGetOrCreateResponse(app_id=app.id)

    async def AppCreate(self, message, _):
        app = App(id=f"ap-{uuid.uuid4().hex[:22]}", name=message.description)
        self.state.apps[app.id] = app
        return api_pb2.AppCreateResponse(app_id=app.id)

    async def AppHeartbeat(self, message, _):
        return None

    async def AppClientDisconnect(self, message, _):
        return None

    async def AppGetTags(self, message, _):
        return api_pb2.AppGetTagsResponse(tags=self.state.apps[message.app_id].tags)

    async def AppPublish(self, message, _):
        app = self.state.apps[message.app_id]
        app.name, app.tags = message.name, dict(message.tags)
        self.state.save_deployed()
        return api_pb2.AppPublishResponse(url="https://modal.invalid/app", deployed_at=time.time())

    async def ImageGetOrCreate(self, message, _):
        digest = hashlib.sha256(message.image.SerializeToString()).hexdigest()
        return api_pb2.ImageGetOrCreateResponse(
            image_id=f"im-{digest[:22]}",
            result=api_pb2.GenericResult(status=api_pb2.GenericResult.GENERIC_STATUS_SUCCESS),
        )

    async def MountBatchedCheckExistence(self, message, _):
        missing = [h for h in message.sha256_hex_hashes if not self._mounted(h).exists()]
        return api_pb2.MountBatchedCheckExistenceResponse(
            missing_sha256_hex_hashes=missing, checked_at=_now()
        )

    async def MountPutFile(self, message, _):
        if message.WhichOneof("data_oneof") == "data":
            self._mounted(message.sha256_hex).write_bytes(message.data)
        exists = self._mounted(message.sha256_hex).exists()
        return api_pb2.MountPutFileResponse(exists=exists, checked_at=_now())

    async def MountGetOrCreate(self, message, _):
        digest = hashlib.sha256(message.SerializeToString()).hexdigest()
        mount_id = f"mo-{digest[:22]}"
        self.state.mounts[mount_id] = {each.filename: each.sha256_hex for each in message.files}
        return api_pb2.MountGetOrCreateResponse(mount_id=mount_id)

    async def FunctionPrecreate(self, message, _):
        key = (message.app_id, message.function_name)
        found = self.state.find_function(self.state.apps[message.app_id].name, key[1])
        function_id = self.precreated.setdefault(key, found.id if found else _function_id())
        return api_pb2.FunctionPrecreateResponse(
            function_id=function_id,
            handle_metadata=api_pb2.FunctionHandleMetadata(
                function_name=message.function_name,
                function_type=message.function_type,
                supported_input_formats=message.supported_input_formats,
                supported_output_formats=message.supported_output_formats,
            ),
        )

    async def FunctionCreate(self, message, _):
        app = self.state.apps[message.app_id]
        function = message.function
        if not message.HasField("function"):  # deployed with several copies
            function = message.function_data.ranked_functions[0].function
        data = api_pb2.FunctionData(
            module_name=function.module_name,
            function_name=function.function_name,
            function_type=function.function_type,
            timeout_secs=function.timeout_secs,
            startup_timeout_secs=function.startup_timeout_secs,
            concurrency_limit=function.concurrency_limit,
            untrusted=function.untrusted,
            autoscaler_settings=function.autoscaler_settings,
            supported_input_formats=function.supported_input_formats,
            supported_output_formats=function.supported_output_formats,
            implementation_name=function.implementation_name,
            ranked_functions=[api_pb2.FunctionData.RankedFunction(rank=0, function=function)],
        )
        deployed = Deployed(
            id=message.existing_function_id or _function_id(),
            app=app.name,
            name=function.function_name,
            data=json_format.MessageToDict(data),
            definition=json_format.MessageToDict(function),
        )
        self.state.functions[deployed.id] = deployed
        return api_pb2.FunctionCreateResponse(
            function_id=deployed.id,
            function=function,
            function_data=data,
            handle_metadata=self.handle_metadata(deployed),
        )

    async def BlobCreate(self, message, _):
        blob_id = f"bl-{uuid.uuid4().hex}"
        return api_pb2.BlobCreateResponse(
            blob_id=blob_id,
            blob_ids=[blob_id],
            upload_urls=api_pb2.UploadUrlList(items=[f"{self.blob_url}/blob/{blob_id}"]),
        )

    def _mounted(self, sha256_hex: str):
        folder = self.state.root / "mounted"
        folder.mkdir(exist_ok=True)
        return folder / sha256_hex

    def handle_metadata(self, deployed: Deployed) -> api_pb2.FunctionHandleMetadata:
        raise NotImplementedError


def _function_id() -> str:
    return f"fu-{uuid.uuid4().hex[:22]}"


def _now() -> Timestamp:
    made = Timestamp()
    made.GetCurrentTime()
    return made
