"""The service under load, and beside it any other server (docs/performance.md).

    DATABASE_URL=postgres://… python -m benchmarks.load

Web processes, a dispatcher with the instant runner, local files. Prints JSON:

    latency      one request after the other: from the POST to the last byte of its stream
    throughput   per number of clients at once: whole requests with a report of 7.6 MB
    delivery     the same reports once they are stored, taken up by 100 clients at once, in turns with a
                 server that does nothing but base64 and loopback; `share` is ours of its rate
    waiting      1,000 streams that wait, at processes that began just before: dropped ones, PSS of web and
                 dispatcher
    other        latency and throughput of the server at --url, in turns with ours

Without --url, nothing but 127.0.0.1 is asked. Every part has a limit of its own in time.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.processes import Memory, Production
from benchmarks.wire_client import Answer, OpenStream, Target, open_get, open_profile, spread
from tests import environment  # noqa: F401  what settings.py reads, before it is read
from tests.server.service import ROOT

LIMIT_S = 150  # of each measurement


def main() -> None:
    options = parse_options()
    # An end by a time limit cleans up as Ctrl-C does.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with tempfile.TemporaryDirectory(prefix="load-") as folder:
        print(json.dumps(asyncio.run(measure(Path(folder), options)), indent=2))


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.load")
    parser.add_argument("--web-processes", type=int, default=2)
    parser.add_argument("--requests", type=int, default=50, help="for the latency")
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 8, 32, 100])
    parser.add_argument("--report-bytes", type=int, default=7_600_000)
    parser.add_argument("--rounds", type=int, default=3, help="of the delivery")
    parser.add_argument("--waiting", type=int, default=1000, help="streams")
    parser.add_argument("--hold-s", type=float, default=20, help="how long they wait")
    other = parser.add_argument_group("another server, asked by the same client in the same run")
    other.add_argument("--url")
    other.add_argument("--cli-id", default="")
    other.add_argument("--leaderboard", default="")
    other.add_argument("--gpu", default="")
    other.add_argument("--submission", type=Path, help="the file that is sent to it")
    return parser.parse_args()


async def measure(folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    service = Production(folder, options.web_processes)
    try:
        service.prepare()
        service.start_web()
        service.start_dispatcher()
        targets = {"ours": service.target} | other_target(options)
        await take(service.target, 2 * options.web_processes)  # every import has been used
        small = await in_turns(targets, lambda each: latency(each, options.requests))
        service.plan(archive=str(service.make_archive(options.report_bytes)))
        async with Memory(service).watched() as memory:
            large: dict[str, Any] = {name: {} for name in targets}
            for clients in options.clients:
                for name, told in (
                    await in_turns(targets, lambda each, n=clients: throughput(each, n))  # type: ignore[misc]
                ).items():
                    large[name][str(clients)] = told
            delivered = await delivery(service, max(options.clients), options)
        service.restart()
        told = {
            "database": service.env["DATABASE_URL"].partition(":")[0],
            "web_processes": options.web_processes,
            "report_bytes": options.report_bytes,
            "latency": small.pop("ours"),
            "throughput": large.pop("ours"),
            "delivery": delivered,
            "peak_pss": memory.told(),
            "waiting": await waiting(service, options),
        }
        if options.url:
            told["other"] = {"latency": small["other"], "throughput": large["other"]}
    finally:
        service.stop_all()
    return told


def other_target(options: argparse.Namespace) -> dict[str, Target]:
    if not options.url:
        return {}
    return {
        "other": Target(
            url=options.url,
            cli_id=options.cli_id,
            leaderboard=options.leaderboard,
            gpu=options.gpu,
            submission=options.submission.read_bytes(),
        )
    }


async def in_turns[T](
    targets: dict[str, Target], ask: Callable[[Target], Awaitable[T]]
) -> dict[str, T]:
    return {name: await asyncio.wait_for(ask(each), LIMIT_S) for name, each in targets.items()}


async def latency(target: Target, requests: int) -> dict[str, Any]:
    answers = [await one(target) for _ in range(requests)]
    return told_of(answers)


async def throughput(target: Target, clients: int) -> dict[str, Any]:
    began = time.perf_counter()
    answers = await take(target, clients)
    seconds = time.perf_counter() - began
    sent = sum(answer.size for answer in answers)
    return told_of(answers) | {
        "seconds": round(seconds, 2),
        "mb_per_s": round(sent / 1e6 / seconds, 1),
    }


async def take(target: Target, clients: int) -> list[Answer]:
    return list(await asyncio.gather(*(one(target) for _ in range(clients))))


async def one(target: Target) -> Answer:
    return await (await open_profile(target)).read_to_end()


def told_of(answers: list[Answer]) -> dict[str, Any]:
    return {
        "requests": len(answers),
        "results": sum(answer.last == "result" for answer in answers),
    } | spread([answer.seconds for answer in answers])


async def delivery(
    service: Production, clients: int, options: argparse.Namespace
) -> dict[str, Any]:
    """Each client takes up the stream of a finished request of its own."""
    paths = await asyncio.to_thread(newest_streams, service, clients)
    archive = service.folder / f"padded-{options.report_bytes}.zip"
    rates: dict[str, list[float]] = {"ours": [], "reference": []}
    results = 0
    with reference_server(archive, options.web_processes) as url:
        reference = Target(url=url, cli_id="", leaderboard="", gpu="", submission=b"")
        for target in (reference, service.target):  # files and imports are in memory
            await asyncio.wait_for(get_all(target, paths[:2]), LIMIT_S)
        for _ in range(options.rounds):
            for name, target in (("reference", reference), ("ours", service.target)):
                began = time.perf_counter()
                answers = await asyncio.wait_for(get_all(target, paths), LIMIT_S)
                seconds = time.perf_counter() - began
                rates[name].append(sum(answer.size for answer in answers) / 1e6 / seconds)
                results += sum(answer.last == "result" for answer in answers)
    ours, allowed = (statistics.median(rates[name]) for name in ("ours", "reference"))
    return {
        "clients": clients,
        "results": results,
        "results_wanted": 2 * options.rounds * clients,
        "mb_per_s": round(ours, 1),
        "reference_mb_per_s": round(allowed, 1),
        "share": round(ours / allowed, 3),
        "shares": [round(a / b, 3) for a, b in zip(rates["ours"], rates["reference"], strict=True)],
    }


async def get_all(target: Target, paths: list[str]) -> list[Answer]:
    async def get(path: str) -> Answer:
        return await (await open_get(target, path)).read_to_end()

    return list(await asyncio.gather(*map(get, paths)))


def newest_streams(service: Production, count: int) -> list[str]:
    """Paths of the streams of the newest requests."""
    with service.client() as client:
        found = client.get("/api/profile-requests/", params={"limit": count}).json()["results"]
    return [each["urls"]["stream"].removeprefix(service.base_url) for each in found]


@contextmanager
def reference_server(archive: Path, processes: int) -> Iterator[str]:
    command = [sys.executable, "-m", "benchmarks.reference_server", str(archive), str(processes)]
    with subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as server:
        assert server.stdout is not None
        try:
            yield f"http://127.0.0.1:{int(server.stdout.readline())}"
        finally:
            server.stdin.close()  # type: ignore[union-attr]


async def all_answer(opened: list[OpenStream]) -> None:
    """Return when each had its first byte, or after the limit."""
    deadline = time.monotonic() + LIMIT_S
    for each in opened:
        while each.first_byte_s is None and time.monotonic() < deadline:  # noqa: ASYNC110
            await asyncio.sleep(0.1)


async def waiting(service: Production, options: argparse.Namespace) -> dict[str, Any]:
    """The runs last longer than they are watched, so those that are claimed wait as the others do."""
    service.plan(run_s=3600)
    async with Memory(service).watched() as memory:
        opened = [await open_profile(service.target) for _ in range(options.waiting)]
        ends = [asyncio.create_task(each.read_to_end()) for each in opened]
        await all_answer(opened)
        answered = sum(each.first_byte_s is not None for each in opened)
        await asyncio.sleep(options.hold_s)
        dropped = sum(end.done() for end in ends)
    for end in ends:
        end.cancel()
    await asyncio.gather(*ends, return_exceptions=True)
    firsts = [each.first_byte_s for each in opened if each.first_byte_s is not None]
    told = {"streams": options.waiting, "answered": answered, "dropped": dropped}
    return told | {"held_for_s": options.hold_s, "pss": memory.told()} | spread(firsts)


if __name__ == "__main__":
    main()
