"""python -m tests.fake_modal --state DIR: serve until killed; the first line says where."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import socket
from pathlib import Path

from aiohttp import web
from grpclib.server import Server

from tests.fake_modal.blobs import Blobs
from tests.fake_modal.containers import Containers
from tests.fake_modal.control import Control
from tests.fake_modal.control_plane import ControlPlane
from tests.fake_modal.rpc import status_codec
from tests.fake_modal.state import State


async def serve(arguments: argparse.Namespace) -> None:
    blob_socket = socket.create_server(("127.0.0.1", arguments.blob_port))
    blob_url = f"http://127.0.0.1:{blob_socket.getsockname()[1]}"
    state = State(arguments.state)
    plane = ControlPlane((arguments.token_id, arguments.token_secret), state, blob_url)
    grpc_socket = socket.create_server(("127.0.0.1", arguments.port))
    server_url = f"http://127.0.0.1:{grpc_socket.getsockname()[1]}"
    if arguments.containers:
        containers = Containers(plane, server_url, arguments.container_path)
        for call in state.calls.values():
            if call.output is None:
                containers.start(call)  # the queue is durable, as Modal's is
    app = web.Application(client_max_size=2**31)
    app.add_routes(Blobs(state.root / "blobs").routes() + Control(plane).routes())
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.SockSite(runner, blob_socket).start()
    server = Server([plane], status_details_codec=status_codec)
    await server.start(sock=grpc_socket)
    print(json.dumps({"server_url": server_url, "blob_url": blob_url}), flush=True)
    await asyncio.Event().wait()


def main() -> None:
    parser = argparse.ArgumentParser(prog="tests.fake_modal", description=__doc__)
    parser.add_argument("--state", type=Path, required=True)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--blob-port", type=int, default=0)
    parser.add_argument("--token-id", default="ak-test")
    parser.add_argument("--token-secret", default="as-test")
    parser.add_argument("--containers", action="store_true", help="run each call for real")
    parser.add_argument("--container-path", default=os.environ.get("PATH", ""))
    asyncio.run(serve(parser.parse_args()))


if __name__ == "__main__":
    main()
