"""Memory of the web process while it sends large results and holds many streams (docs/performance.md).

    python -m benchmarks.stream_memory

A real web server and dispatcher with the fake runner, on a database and files of their own.
Prints JSON: megabytes (10^6 bytes) of PSS by which the web process grew at most, and whether every
client got its last event.
"""

from __future__ import annotations

import asyncio
import json
import os
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx

from tests import environment  # noqa: F401  what settings.py reads, before it is read
from tests.object_store import AWS, BUCKET, ObjectStore
from tests.server.popcorn import PATH, SUBMISSION
from tests.server.service import Service

REPORT_BYTES = 7_600_000
LARGE_REPORT_BYTES = 100_000_000
S3_REPORT_BYTES = 40_000_000
CLIENTS = 8
WAITING = 500
WAIT_S = 60
PART = b'--x\r\nContent-Disposition: form-data; name="%b"%b\r\n\r\n%b\r\n'
BODY = (
    PART % (b"file", b'; filename="submission.py"', SUBMISSION)
    + PART % (b"benchmark_index", b"", b"0")
    + b"--x--\r\n"
)


def pss_bytes(pid: int) -> int:
    """The proportional set size: what the process costs the machine."""
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) * 1024
    raise AssertionError("the kernel tells no PSS")


class Growth:
    """Samples a process in the background; `peak` and `last` are bytes above the beginning."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.start = pss_bytes(pid)
        self.peak = self.last = 0

    @asynccontextmanager
    async def sampled(self) -> AsyncIterator[Growth]:
        task = asyncio.create_task(self._sample())
        try:
            yield self
        finally:
            task.cancel()
            self._take()

    async def _sample(self) -> None:
        while True:
            self._take()
            await asyncio.sleep(0.02)

    def _take(self) -> None:
        self.last = pss_bytes(self.pid) - self.start
        self.peak = max(self.peak, self.last)

    def told(self) -> dict[str, float]:
        return {"grew_by_mb": round(self.peak / 1e6, 1), "afterwards_mb": round(self.last / 1e6, 1)}


async def open_stream(service: Service, headers: str = "") -> Any:
    """Reader and writer of a profile request, just sent."""
    reader, writer = await asyncio.open_connection("127.0.0.1", service.port, limit=2**20)
    head = (
        f"POST {PATH} HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Popcorn-Cli-Id: alice-cli-id\r\n"
        f"Content-Type: multipart/form-data; boundary=x\r\nContent-Length: {len(BODY)}\r\n"
        f"Connection: close\r\n{headers}\r\n"
    )
    writer.write(head.encode() + BODY)
    await writer.drain()
    return reader, writer


async def read_to_end(opened: Any) -> tuple[int, str]:
    """Bytes of the answer, and the kind of its last event. Keeps nothing in memory."""
    reader, writer = opened
    size, kind, before = 0, "", b""
    while piece := await reader.read(2**18):
        size += len(piece)
        seen = before + piece
        for name in ("result", "error"):
            if f"event: {name}\n".encode() in seen:
                kind = name
        before = piece[-16:]
    writer.close()
    return size, kind


async def send_results(service: Service, clients: int, report_bytes: int) -> dict[str, Any]:
    service.plan(archive=str(service.make_archive(report_bytes)))
    began = time.monotonic()
    async with Growth(service.pid("web")).sampled() as growth:

        async def one() -> tuple[int, str]:
            return await read_to_end(await open_stream(service))

        ends = await asyncio.gather(*(one() for _ in range(clients)))
    return growth.told() | {
        "clients": clients,
        "results": sum(kind == "result" for _, kind in ends),
        "sent_mb": round(sum(size for size, _ in ends) / 1e6, 1),
        "seconds": round(time.monotonic() - began, 1),
    }


async def hold_streams(service: Service) -> dict[str, Any]:
    """No dispatcher runs, so that all of them wait; at the end every profile is cancelled."""
    async with Growth(service.pid("web")).sampled() as growth:
        opened = [await open_stream(service) for _ in range(WAITING)]
        ends = [asyncio.create_task(read_to_end(each)) for each in opened]
        await asyncio.sleep(WAIT_S)
        dropped = sum(end.done() for end in ends)
        threads = len(os.listdir(f"/proc/{service.pid('web')}/task"))
        await asyncio.to_thread(cancel_all, service)
        finished = await asyncio.gather(*ends)
    return growth.told() | {
        "streams": WAITING,
        "held_for_s": WAIT_S,
        "threads": threads,
        "dropped": dropped + sum(kind != "error" for _, kind in finished),
    }


def cancel_all(service: Service) -> None:
    with service.client() as client:
        page = "/api/profile-requests/?limit=100"
        while page:
            answer = client.get(page).json()
            for each in answer["results"]:
                if each["status"] == "queued":
                    client.post(each["urls"]["cancel"])
            page = answer["next"]


async def download(service: Service, url: str) -> int:
    """Bytes that came of an archive; keeps nothing in memory."""
    size = 0
    headers = {"X-Popcorn-Cli-Id": "alice-cli-id"}
    async with (
        httpx.AsyncClient(timeout=600, trust_env=False, headers=headers) as client,
        client.stream("GET", url) as answer,
    ):
        async for piece in answer.aiter_raw():
            size += len(piece)
    return size


async def download_from_s3(folder: Path) -> dict[str, Any]:
    """From the first download on, so that all that a thread needs for S3 is in it."""
    s3 = ObjectStore()
    storage = {"REPORTS_STORAGE_URL": f"s3://{BUCKET}", "REPORTS_S3_ENDPOINT": s3.url} | AWS
    service = Service(folder, **storage).prepare()
    try:
        service.plan(archive=str(service.make_archive(S3_REPORT_BYTES)))
        service.start_web()
        service.start_dispatcher()
        await read_to_end(await open_stream(service))  # beyond the cap: it is not read for this
        with service.client() as client:
            [one] = client.get("/api/profile-requests/").json()["results"]
            url = client.get(f"/api/profile-requests/{one['id']}/").json()["captures"][0]
        async with Growth(service.pid("web")).sampled() as growth:
            rounds = [
                await asyncio.gather(
                    *(download(service, url["archive"]["url"]) for _ in range(CLIENTS))
                )
                for _ in range(3)
            ]
    finally:
        service.stop_all()
        s3.close()
    sent = [size for each in rounds for size in each]
    return growth.told() | {"downloads": len(sent), "sent_mb": round(sum(sent) / 1e6, 1)}


async def measure(folder: Path) -> dict[str, Any]:
    service = Service(folder, RESULT_LINE_MAX_BYTES=2**28, STREAM_STATUS_EVERY_S=15).prepare()
    measurements: dict[str, Callable[[], Awaitable[dict[str, Any]]]] = {
        "8 results of 7.6 MB": lambda: send_results(service, CLIENTS, REPORT_BYTES),
        "1 result of 100 MB": lambda: send_results(service, 1, LARGE_REPORT_BYTES),
    }
    try:
        service.start_web()
        service.start_dispatcher()
        await send_results(service, 16, 10_000)  # every thread and every import has been used
        told = {name: await ask() for name, ask in measurements.items()}
        service.stop("dispatcher")
        told["500 waiting streams"] = await hold_streams(service)
    finally:
        service.stop_all()
    return told


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="stream-memory-") as folder:
        told = asyncio.run(measure(Path(folder)))
    with tempfile.TemporaryDirectory(prefix="stream-memory-") as folder:
        told["24 downloads of 40 MB from S3"] = asyncio.run(download_from_s3(Path(folder)))
    print(json.dumps(told, indent=2))


if __name__ == "__main__":
    main()
