"""How a test steers the fake: plain JSON over HTTP, beside the blobs."""

from __future__ import annotations

import json
import uuid
from dataclasses import asdict

from aiohttp import web

from tests.fake_modal.blobs import Serving
from tests.fake_modal.control_plane import ControlPlane
from tests.fake_modal.rpc import Fault
from tests.fake_modal.state import App, Deployed


class Control:
    def __init__(self, plane: ControlPlane) -> None:
        self.plane = plane

    def routes(self) -> list[web.RouteDef]:
        return [
            web.post("/control/fault", self.fault),
            web.post("/control/faults/clear", self.clear_faults),
            web.post("/control/reset", self.reset),
            web.post("/control/finish/{id}", self.finish),
            web.post("/control/call/{id}", self.change_call),
            web.post("/control/blob", self.blob),
            web.post("/control/deploy", self.deploy),
            web.get("/control/state", self.state),
        ]

    async def fault(self, request: web.Request) -> web.Response:
        self.plane.faults.append(Fault(**await request.json()))
        return web.json_response({})

    async def clear_faults(self, _: web.Request) -> web.Response:
        self.plane.clear_faults()
        return web.json_response({})

    async def reset(self, _: web.Request) -> web.Response:
        self.plane.reset()
        return web.json_response({})

    async def finish(self, request: web.Request) -> web.Response:
        """The body is a FunctionGetOutputsItem as protobuf JSON."""
        call = self.plane.known_call(request.match_info["id"])
        self.plane.finish(call, await request.json())
        return web.json_response({})

    async def change_call(self, request: web.Request) -> web.Response:
        """Change attributes of a call: expired, enqueued_at, started_at."""
        call = self.plane.known_call(request.match_info["id"])
        for name, value in (await request.json()).items():
            setattr(call, name, value)
        self.plane.state.save(call)
        return web.json_response({})

    async def blob(self, request: web.Request) -> web.Response:
        """Contents in the body, how they are served in the query's `serving`."""
        blob_id = f"bl-{uuid.uuid4().hex}"
        path = self.plane.state.blob(blob_id)
        content = await request.read()
        serving = Serving(**json.loads(request.query.get("serving", "{}")))
        if content:
            path.write_bytes(content)
            serving.size, serving.stored = len(content), True
        serving.save(path)
        return web.json_response({"blob_id": blob_id})

    async def deploy(self, request: web.Request) -> web.Response:
        """A function of any form: app, name, tags, definition and data (protobuf JSON)."""
        body = await request.json()
        app = self.plane.state.find_app(body["app"])
        if app is None:
            app = App(id=f"ap-{uuid.uuid4().hex[:22]}", name=body["app"])
            self.plane.state.apps[app.id] = app
        app.tags = body["tags"]
        found = self.plane.state.find_function(app.name, body["name"])
        deployed = Deployed(
            id=found.id if found else f"fu-{uuid.uuid4().hex[:22]}",
            app=app.name,
            name=body["name"],
            data=body["data"],
            definition=body["definition"],
        )
        self.plane.state.functions[deployed.id] = deployed
        self.plane.state.save_deployed()
        return web.json_response({"function_id": deployed.id})

    async def state(self, _: web.Request) -> web.Response:
        state = self.plane.state
        return web.json_response(
            {
                "calls": [asdict(call) for call in state.calls.values()],
                "functions": [asdict(function) for function in state.functions.values()],
                "apps": [asdict(app) for app in state.apps.values()],
                "requests": self.plane.requests,
                "counts": self.plane.counts,
            }
        )
