"""Walk the outer framing of a `.ncu-rep` file and count the kernel launches in it.

NVIDIA's own reader loads a file that is cut or overwritten without a word, so this comes first.
The file is "NVR", NUL, then messages, each behind its length: a file header, then blocks of a
header and a payload. All lengths must add up to exactly the size of the file.

Memory is constant: nothing but names and numbers is kept, and of those a bounded number.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

MAGIC = b"NVR\0"
LENGTH = struct.Struct("<I")
CHUNK_BYTES = 2**16

# Far above what real reports hold (116 blocks, 1,300 fields in a launch were the most seen): they
# only end the walk through a file that was made to take for ever.
MAX_PARTS = 20_000_000
MAX_NAME_BYTES = 2**16
MAX_NAMES_KEPT = 1_000

# BlockHeader
NUM_SOURCES, NUM_RESULTS, SESSION_DETAILS, PAYLOAD_SIZE = 1, 2, 3, 5
NUM_RANGE_RESULTS, NUM_CMDLIST_RESULTS, NUM_GRAPH_RESULTS = 7, 8, 9
# ProfileResult
MANGLED, FUNCTION, DEMANGLED, CONTEXT, STREAM = 5, 6, 7, 22, 23

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5


class FramingError(ValueError):
    """The file is cut, broken, or no report; the message names the place."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelNames:
    """The three forms in which a report names a launch; empty where it does not."""

    function: str = ""
    mangled: str = ""
    demangled: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a launch ran, as ncu numbers it."""

    context: int | None = None
    stream: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Framing:
    """What the framing of a whole report holds. A launch without any name is not a good one."""

    launches: int
    nameless: int
    kernels: tuple[KernelNames, ...]  # of the first MAX_NAMES_KEPT launches, in order
    places: tuple[Place, ...]  # of the same launches
    range_results: int
    cmdlist_results: int
    graph_results: int


def read_framing(path: Path) -> Framing:
    """Raises FramingError for a file that is not a whole report, OSError if it can't be read."""
    with path.open("rb") as source:
        return _Walk(source).run()


def session_details(path: Path) -> Iterator[bytes]:
    """The ReportSessionDetails of each block, still encoded; those above 64 KiB are left out.

    Raises FramingError where the walk along the block headers ends, which `read_framing` checks
    more closely, and OSError if the file can't be read.
    """
    with path.open("rb") as source:
        yield from _Walk(source).session_details()


class _Walk:
    """One walk through a file; `at` is the offset of the next byte."""

    def __init__(self, source: BinaryIO) -> None:
        self._source = source
        self._chunk = b""
        self._chunk_start = 0
        self._size = source.seek(0, 2)
        self._parts_left = MAX_PARTS
        self.at = 0

    def run(self) -> Framing:
        self._file_header()
        totals: dict[int, int] = {}
        kernels: list[KernelNames] = []
        places: list[Place] = []
        launches = nameless = blocks = 0
        while self.at < self._size:
            blocks += 1
            header, end = self._block_header(blocks)
            self._skip_messages(header.get(NUM_SOURCES, 0), f"a source of block {blocks}", end)
            for _ in range(header.get(NUM_RESULTS, 0)):
                names, place = self._launch(f"launch {launches}", end)
                launches += 1
                nameless += names == KernelNames()
                if launches <= MAX_NAMES_KEPT:
                    kernels.append(names)
                    places.append(place)
            for field in (NUM_RANGE_RESULTS, NUM_CMDLIST_RESULTS, NUM_GRAPH_RESULTS):
                totals[field] = totals.get(field, 0) + header.get(field, 0)
                self._skip_messages(header.get(field, 0), f"a result of block {blocks}", end)
            if self.at != end:
                raise FramingError(
                    f"block {blocks} should end at byte {end}, its parts end at byte {self.at}"
                )
        return Framing(
            launches=launches,
            nameless=nameless,
            kernels=tuple(kernels),
            places=tuple(places),
            range_results=totals.get(NUM_RANGE_RESULTS, 0),
            cmdlist_results=totals.get(NUM_CMDLIST_RESULTS, 0),
            graph_results=totals.get(NUM_GRAPH_RESULTS, 0),
        )

    def session_details(self) -> Iterator[bytes]:
        self._file_header()
        while self.at < self._size:
            end = self._message_end("a block's header", self._size)
            payload_size = 0
            for field, wire_type, value in self._fields(end):
                if wire_type == BYTES:
                    resume = self.at + value
                    if field == SESSION_DETAILS and value <= CHUNK_BYTES:
                        yield self._take(value, "the session's details")
                    self.at = resume
                elif field == PAYLOAD_SIZE:
                    payload_size = value
            self.at = end + payload_size

    def _file_header(self) -> None:
        if self._take(len(MAGIC), "the file's first bytes") != MAGIC:
            raise FramingError("this is no report: it does not begin with NVR and NUL")
        if not dict(self._numbers(self._message_end("the file header", self._size))):
            raise FramingError("the file header is empty")

    def _block_header(self, number: int) -> tuple[dict[int, int], int]:
        """The block's numbers, and the offset at which its payload must end."""
        header_end = self._message_end(f"the header of block {number}", self._size)
        header = dict(self._numbers(header_end))
        end = header_end + header.get(PAYLOAD_SIZE, 0)
        if end > self._size:
            raise FramingError(
                f"cut in block {number}: it ends at byte {end}, the file at byte {self._size}"
            )
        return header, end

    def _message_end(self, what: str, limit: int) -> int:
        """Read a message's length; the offset of its end, which is within `limit`."""
        start = self.at
        self._count_part()
        if start + LENGTH.size > limit:
            raise FramingError(f"cut at byte {start}: no room for the length of {what}")
        (length,) = LENGTH.unpack(self._take(LENGTH.size, what))
        if self.at + length > limit:
            raise FramingError(f"cut at byte {start}: {what} is longer than what is left")
        return self.at + int(length)

    def _skip_messages(self, count: int, what: str, limit: int) -> None:
        for _ in range(count):
            self.at = self._message_end(what, limit)

    def _launch(self, what: str, limit: int) -> tuple[KernelNames, Place]:
        end = self._message_end(what, limit)
        names = {MANGLED: "", FUNCTION: "", DEMANGLED: ""}
        numbers: dict[int, int] = {}
        for field, wire_type, value in self._fields(end):
            if wire_type == BYTES and field in names:
                resume = self.at + value
                name = self._take(min(value, MAX_NAME_BYTES), what)
                names[field] = name.decode(errors="replace").replace("\0", "").strip()
                self.at = resume
            elif wire_type == BYTES:
                self.at += value
            elif wire_type == VARINT and field in (CONTEXT, STREAM):
                numbers[field] = value
        found = KernelNames(
            function=names[FUNCTION], mangled=names[MANGLED], demangled=names[DEMANGLED]
        )
        return found, Place(context=numbers.get(CONTEXT), stream=numbers.get(STREAM))

    def _numbers(self, end: int) -> Iterator[tuple[int, int]]:
        for field, wire_type, value in self._fields(end):
            if wire_type == VARINT:
                yield field, value
            elif wire_type == BYTES:
                self.at += value

    def _fields(self, end: int) -> Iterator[tuple[int, int, int]]:
        """Field number, wire type, and the number, or the length of bytes that come next."""
        while self.at < end:
            start = self.at
            self._count_part()
            key = self._varint(end)
            field, wire_type, value = key >> 3, key & 7, 0
            if field == 0 or wire_type not in (VARINT, FIXED64, BYTES, FIXED32):
                raise FramingError(f"broken at byte {start}: this is no field of a message")
            if wire_type in (VARINT, BYTES):
                value = self._varint(end)
            else:
                self.at += 8 if wire_type == FIXED64 else 4
            if self.at > end or (wire_type == BYTES and self.at + value > end):
                raise FramingError(f"broken at byte {start}: a field is longer than its message")
            yield field, wire_type, value

    def _count_part(self) -> None:
        self._parts_left -= 1
        if self._parts_left < 0:
            raise FramingError(f"more than {MAX_PARTS} messages and fields")

    def _varint(self, end: int) -> int:
        start, value = self.at, 0
        for shift in range(0, 70, 7):
            if self.at >= end:
                break
            byte = self._take(1, "a number")[0]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
        raise FramingError(f"broken at byte {start}: a number without an end")

    def _take(self, count: int, what: str) -> bytes:
        """The next `count` bytes, which are 64 KiB at most."""
        offset = self.at - self._chunk_start
        if not 0 <= offset <= len(self._chunk) - count:
            self._source.seek(self.at)
            self._chunk, self._chunk_start, offset = self._source.read(CHUNK_BYTES), self.at, 0
        taken = self._chunk[offset : offset + count]
        if len(taken) != count:
            raise FramingError(f"cut at byte {self.at + len(taken)}: {what} is missing")
        self.at += count
        return taken
