"""An S3 server as a network shows it: the front is killed and frozen, what was stored is durable.

python -m tests.modal.s3_front PORT SERVER HOLD: passes requests on to SERVER; while a file HOLD
exists uploads wait, as at a slow storage. Signed addresses are checked as S3 does.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import aiohttp
from aiohttp import web
from yarl import URL

from tests.object_store import ObjectStore
from tests.signatures import SIGNED, refusal

PIECE_BYTES = 2**16
# Of one connection alone; the rest is passed on as it came, signatures with it.
OURS = {"connection", "expect", "keep-alive", "transfer-encoding"}


class S3Front(ObjectStore):
    """`kill`, `freeze` and `start` are about the front."""

    def __init__(self, hold: Path) -> None:
        self.server = ObjectStore()
        self.hold = hold
        super().__init__()

    def command(self) -> list[str]:
        where = [str(self.port), self.server.url, str(self.hold)]
        return [sys.executable, "-m", "tests.modal.s3_front", *where]

    def keys(self) -> list[str]:
        return self.server.keys()

    def hold_uploads(self) -> None:
        self.hold.touch()

    def let_uploads_go(self) -> None:
        self.hold.unlink(missing_ok=True)

    def close(self) -> None:
        self.kill()
        self.server.kill()


async def pass_on(request: web.Request) -> web.StreamResponse:
    if SIGNED in request.query and (why := refusal(f"http://{request.host}{request.raw_path}")):
        return web.Response(status=403, text=why)
    while request.method == "PUT" and request.app["hold"].exists():  # noqa: ASYNC110  a file
        await asyncio.sleep(0.02)
    headers = {name: value for name, value in request.headers.items() if name.lower() not in OURS}
    url = request.app["server"] + request.raw_path
    async with (
        aiohttp.ClientSession(auto_decompress=False) as session,
        session.request(
            request.method,
            URL(url, encoded=True),
            headers=headers,
            data=request.content if request.can_read_body else None,
        ) as answer,
    ):
        kept = {name: value for name, value in answer.headers.items() if name.lower() not in OURS}
        response = web.StreamResponse(status=answer.status, headers=kept)
        await response.prepare(request)
        async for piece in answer.content.iter_chunked(PIECE_BYTES):
            await response.write(piece)
    return response


def main() -> None:
    port, server, hold = sys.argv[1:]
    app = web.Application(client_max_size=2**31)
    app["server"], app["hold"] = server, Path(hold)
    app.router.add_route("*", "/{path:.*}", pass_on)
    web.run_app(app, host="127.0.0.1", port=int(port), print=None, access_log=None)


if __name__ == "__main__":
    main()
