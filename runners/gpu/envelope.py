"""The result of a job as one file: a 4-byte length, a JSON header, then the parts.

The header (64 KiB at most) says who made it, how the job ended and which parts follow. The first
part is always `outcome.json`; the others are archives. One writer, one reader, for all runners.
"""

from __future__ import annotations

import hashlib
import platform
import shutil
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from runners.gpu import wire
from runners.gpu.build import build_id
from runners.gpu.contract import (
    MAX_OUTCOME_BYTES,
    SCHEMA,
    FailureKind,
    JobOutcome,
    read_outcome,
)

MAX_HEADER_BYTES = 64 * 2**10
OUTCOME_PART = "outcome.json"
LENGTH = struct.Struct(">I")


class EnvelopeError(ValueError):
    """The file is not a whole envelope of this schema."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    name: str
    size: int
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """`status` is "finished", or the kind of the failure of the job as a whole."""

    schema: int
    status: str
    versions: dict[str, str]
    exit_codes: dict[str, int]
    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Envelope:
    """A checked envelope on disk: sizes and digests of all parts match."""

    path: Path
    header: Header
    outcome: JobOutcome
    offsets: dict[str, int]

    def part(self, name: str) -> Part | None:
        return next((part for part in self.header.parts if part.name == name), None)

    def extract(self, name: str, target: Path) -> None:
        """Copy one part to a new file, in pieces."""
        part = self.part(name)
        if part is None:
            raise EnvelopeError(f"there is no part {name[:80]!r}")
        with self.path.open("rb") as source, target.open("xb") as out:
            source.seek(self.offsets[name])
            for piece in _pieces(source, part.size):
                out.write(piece)


def write(target: Path, outcome: JobOutcome, archives: dict[str, Path]) -> None:
    """Write an envelope; the target appears whole or not at all."""
    body = wire.dumps(outcome)
    parts = [Part(name=OUTCOME_PART, size=len(body), sha256=hashlib.sha256(body).hexdigest())]
    for name, path in archives.items():
        with path.open("rb") as archive:
            digest = hashlib.file_digest(archive, "sha256").hexdigest()
        parts.append(Part(name=name, size=path.stat().st_size, sha256=digest))
    header = wire.dumps(
        Header(
            schema=SCHEMA,
            status=outcome.failure.kind if outcome.failure else "finished",
            versions={"python": platform.python_version(), "build": build_id()},
            exit_codes={key: r.run.exit_code for key, r in outcome.runs.items() if r.run},
            parts=tuple(parts),
        )
    )
    unfinished = target.with_name(target.name + ".part")
    with unfinished.open("wb") as out:
        out.write(LENGTH.pack(len(header)) + header + body)
        for path in archives.values():
            with path.open("rb") as source:
                shutil.copyfileobj(source, out, 2**20)
    unfinished.replace(target)


def read(path: Path) -> Envelope:
    """Check all of an envelope. Raises EnvelopeError with the place of the first fault."""
    try:
        with path.open("rb") as source:
            header = _read_header(source)
            offsets, body = _check_parts(source, header)
            outcome = read_outcome(body)
    except wire.WireError as error:
        raise EnvelopeError(str(error)) from error
    named = {r.capture.archive for r in outcome.runs.values() if r.capture}
    if missing := sorted(named - set(offsets)):
        raise EnvelopeError(f"the outcome names a part that is not there: {missing[0][:80]!r}")
    return Envelope(path=path, header=header, outcome=outcome, offsets=offsets)


def _read_header(source: BinaryIO) -> Header:
    prefix = source.read(LENGTH.size)
    if len(prefix) != LENGTH.size:
        raise EnvelopeError("shorter than its length field")
    (length,) = LENGTH.unpack(prefix)
    if length > MAX_HEADER_BYTES:
        raise EnvelopeError(f"a header of {length} bytes, at most {MAX_HEADER_BYTES} are read")
    content = source.read(length)
    if len(content) != length:
        raise EnvelopeError("cut inside the header")
    header = wire.loads(Header, content, max_bytes=MAX_HEADER_BYTES)
    if header.schema != SCHEMA:
        raise EnvelopeError(f"schema {header.schema} was sent, this side speaks {SCHEMA}")
    if header.status != "finished" and header.status not in list(FailureKind):
        raise EnvelopeError(f"unknown status {header.status[:80]!r}")
    return header


def _check_parts(source: BinaryIO, header: Header) -> tuple[dict[str, int], bytes]:
    names = [part.name for part in header.parts]
    if not names or names[0] != OUTCOME_PART or len(set(names)) != len(names):
        raise EnvelopeError("the parts must begin with outcome.json and have distinct names")
    if header.parts[0].size > MAX_OUTCOME_BYTES:
        raise EnvelopeError(f"an outcome of {header.parts[0].size} bytes")
    offsets, body = {}, b""
    for part in header.parts:
        if part.size < 0:
            raise EnvelopeError(f"part {part.name[:80]!r} has a negative size")
        offsets[part.name] = source.tell()
        digest = hashlib.sha256()
        for piece in _pieces(source, part.size):
            digest.update(piece)
            if part is header.parts[0]:
                body += piece
        if digest.hexdigest() != part.sha256:
            raise EnvelopeError(f"part {part.name[:80]!r} does not match its sha256")
    if source.read(1):
        raise EnvelopeError("bytes after the last part")
    return offsets, body


def _pieces(source: BinaryIO, size: int) -> Iterable[bytes]:
    left = size
    while left:
        piece = source.read(min(left, 2**20))
        if not piece:
            raise EnvelopeError("cut inside a part")
        left -= len(piece)
        yield piece
