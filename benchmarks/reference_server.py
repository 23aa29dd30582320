"""What loopback and base64 allow: sends the base64 of one file to whoever asks, and nothing else.

    python -m benchmarks.reference_server FILE PROCESSES

Prints its port on 127.0.0.1. Ends with its standard input, so that it never outlives who started it.
"""

from __future__ import annotations

import asyncio
import base64
import os
import socket
import sys
from pathlib import Path

import uvloop

PIECE_BYTES = 384 * 2**10  # as the service does it: profiling/wire_result.py
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"


async def serve(listening: socket.socket, path: Path) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(HEAD + b"event: result\ndata: ")
        with path.open("rb") as file:
            while piece := file.read(PIECE_BYTES):
                writer.write(base64.b64encode(piece))
                await writer.drain()
        writer.write(b"\n\n")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, sock=listening, backlog=1024)
    ended = asyncio.get_running_loop().run_in_executor(None, sys.stdin.buffer.read)
    await ended
    server.close()


def main() -> None:
    path, processes = Path(sys.argv[1]), int(sys.argv[2])
    listening = socket.create_server(("127.0.0.1", 0), backlog=1024)
    print(listening.getsockname()[1], flush=True)
    for _ in range(processes - 1):
        if os.fork() == 0:
            break
    uvloop.run(serve(listening, path))
    os._exit(0)


if __name__ == "__main__":
    main()
