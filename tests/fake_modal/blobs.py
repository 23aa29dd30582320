"""Blobs over HTTP, as an object store serves them, and in all the ways in which one fails.

`<blob>.json` beside a blob says how it is served: see `Serving`.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import AsyncIterator
from dataclasses import asdict, dataclass
from pathlib import Path

from aiohttp import web

PIECE = 2**16


@dataclass(kw_only=True)
class Serving:
    """The stored file, else `head` (hex) and then zeros up to `size`.

    `pace_s` is slept before each piece; after `break_after` bytes the connection is cut;
    `stall_after` bytes it stays open and sends nothing more; `claimed` is a Content-Length that is
    not true.
    """

    size: int = 0
    stored: bool = False
    head: str = ""
    status: int = 200
    pace_s: float = 0
    break_after: int | None = None
    stall_after: int | None = None
    claimed: int | None = None

    def save(self, path: Path) -> None:
        path.with_name(path.name + ".json").write_text(json.dumps(asdict(self)))


class Blobs:
    def __init__(self, root: Path) -> None:
        self.root = root

    def routes(self) -> list[web.RouteDef]:
        return [web.put("/blob/{id}", self.put), web.get("/blob/{id}", self.get)]

    async def put(self, request: web.Request) -> web.Response:
        path = self.root / request.match_info["id"]
        digest = hashlib.md5(usedforsecurity=False)
        with path.open("wb") as out:
            async for piece in request.content.iter_chunked(PIECE):
                digest.update(piece)
                out.write(piece)
        Serving(size=path.stat().st_size, stored=True).save(path)
        return web.Response(headers={"ETag": f'"{digest.hexdigest()}"'})

    async def get(self, request: web.Request) -> web.StreamResponse:
        path = self.root / request.match_info["id"]
        serving = Serving(**json.loads(path.with_name(path.name + ".json").read_text()))
        response = web.StreamResponse(status=serving.status)
        response.content_length = serving.size if serving.claimed is None else serving.claimed
        await response.prepare(request)
        sent = 0
        async for piece in _contents(path, serving):
            if serving.stall_after is not None and sent >= serving.stall_after:
                await asyncio.sleep(3600)
            if serving.break_after is not None and sent >= serving.break_after:
                request.transport.abort()
                break
            await asyncio.sleep(serving.pace_s)
            await response.write(piece)
            sent += len(piece)
        return response


async def _contents(path: Path, serving: Serving) -> AsyncIterator[bytes]:
    if serving.stored:
        with path.open("rb") as source:
            while piece := source.read(PIECE):
                yield piece
        return
    head, left = bytes.fromhex(serving.head), serving.size
    while left > 0:
        piece = (head + bytes(PIECE))[: min(PIECE, left)]
        head = b""
        left -= len(piece)
        yield piece
