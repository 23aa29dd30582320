"""From a raw output of Modal to an envelope in a file, in pieces, or to a refusal.

A result counts only if it says success and is exactly one CBOR byte string of definite length: a
header of 1 to 9 bytes, then the body. The header is read by hand, and nothing else is decoded: a
CBOR library would build objects of many kinds, a pickle runs code.
"""

from __future__ import annotations

import asyncio
import logging
import shutil
import uuid
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
from modal_proto import api_pb2

from runners.backends import modal_faults
from runners.exceptions import RunnerFault

logger = logging.getLogger(__name__)

PIECE_BYTES = 2**20
# Seconds without a byte, and for all of it.
STALL_LIMIT_S = 30.0
DOWNLOAD_LIMIT_S = 900.0
# Left free for everything else that lives on this disk.
DISK_RESERVE_BYTES = 2**29

_BYTE_STRING = 0x40  # major type 2 in the upper three bits
_LENGTH_BYTES = {24: 1, 25: 2, 26: 4, 27: 8}


class NotAByteString(ValueError):
    """The bytes are no result; the message is for the log."""


def byte_string_head(start: bytes, max_bytes: int) -> tuple[int, int] | None:
    """Size of the header and of the body behind it; None when more bytes are needed to tell.

    Raises NotAByteString for anything but a byte string of definite length within `max_bytes`.
    """
    if not start:
        return None
    if start[0] & 0xE0 != _BYTE_STRING:
        raise NotAByteString(f"begins with {start[:8].hex()}")
    short = start[0] & 0x1F
    if short >= 24 and short not in _LENGTH_BYTES:
        raise NotAByteString("has no definite length")
    width = _LENGTH_BYTES.get(short, 0)
    if len(start) < 1 + width:
        return None
    size = int.from_bytes(start[1 : 1 + width]) if width else short
    if size > max_bytes:
        raise NotAByteString(f"holds {size} bytes, at most {max_bytes} are taken")
    return 1 + width, size


def result_of(output: api_pb2.FunctionGetOutputsItem) -> api_pb2.GenericResult:
    """The result of a call that succeeded in the agreed format; else raises RunnerFault."""
    result = output.result
    if result.status != api_pb2.GenericResult.GENERIC_STATUS_SUCCESS:
        # Text of a container that ran a stranger's code: cut, escaped, and for the log alone.
        logger.warning(
            "a call ended with %s: %.500r",
            api_pb2.GenericResult.GenericStatus.Name(result.status),
            result.exception,
        )
        raise modal_faults.outcome_fault(result.status)
    if output.data_format != api_pb2.DATA_FORMAT_CBOR:
        logger.error("a result came in format %s, which is not read", output.data_format)
        raise modal_faults.bad_result()
    return result


async def spool(pieces: AsyncIterator[bytes], target: Path, max_bytes: int) -> None:
    """Write the body of one byte string to `target`, which appears whole or not at all.

    Raises NotAByteString, or what `pieces` raises; then nothing is left behind.
    """
    unfinished = target.with_name(f"{target.name}.{uuid.uuid4().hex}.part")
    try:
        with unfinished.open("xb") as out:
            start, left = b"", -1
            async for piece in pieces:
                if left < 0:
                    start += piece
                    head = byte_string_head(start, max_bytes)
                    if head is None:
                        continue
                    require_room(target.parent, head[1])
                    piece, left = start[head[0] :], head[1]
                if len(piece) > left:
                    raise NotAByteString("goes on after its end")
                await asyncio.to_thread(out.write, piece)
                left -= len(piece)
            if left:
                raise NotAByteString("ends before its end")
        unfinished.replace(target)
    finally:
        unfinished.unlink(missing_ok=True)


def require_room(folder: Path, size: int) -> None:
    if shutil.disk_usage(folder).free < size + DISK_RESERVE_BYTES:
        raise RunnerFault(
            "The service has no room for the result at the moment. The result is not lost.",
            kind="spool_full",
            retryable=True,
        )


async def pieces_of(data: bytes) -> AsyncIterator[bytes]:
    """A result that came inline, as `download` gives one that did not."""
    for begin in range(0, len(data), PIECE_BYTES):
        yield data[begin : begin + PIECE_BYTES]


async def download(url: str, max_bytes: int) -> AsyncIterator[bytes]:
    """The bytes behind a URL in pieces. Raises httpx.HTTPError, TimeoutError, NotAByteString."""
    limits = httpx.Timeout(20, read=STALL_LIMIT_S)
    headers = {"accept-encoding": "identity"}
    async with (
        asyncio.timeout(DOWNLOAD_LIMIT_S),
        httpx.AsyncClient(timeout=limits) as client,
        client.stream("GET", url, headers=headers) as answer,
    ):
        if not answer.is_success:
            # Not raise_for_status: its text has the address, whose signature opens the result.
            raise httpx.HTTPError(f"the download was answered with {answer.status_code}")
        if int(answer.headers.get("content-length", 0)) > max_bytes + 9:
            raise NotAByteString(f"a download of {answer.headers['content-length'][:20]} bytes")
        async for piece in answer.aiter_raw(PIECE_BYTES):
            yield piece
