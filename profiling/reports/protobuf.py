"""The few steps of protobuf's wire format that reading a session takes; damage ends a message."""

from __future__ import annotations

from collections.abc import Iterator

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5

Field = tuple[int, int | bytes]


def fields(message: bytes) -> Iterator[Field]:
    """Number and value of each field: an integer, or bytes for text and messages."""
    at = 0
    while at < len(message):
        key, at = _varint(message, at)
        number, wire_type = key >> 3, key & 7
        if wire_type == VARINT:
            value, at = _varint(message, at)
            if at <= len(message):
                yield number, value
        elif wire_type == BYTES:
            length, at = _varint(message, at)
            if at + length <= len(message):
                yield number, message[at : at + length]
            at += length
        elif wire_type in (FIXED64, FIXED32):
            at += 8 if wire_type == FIXED64 else 4
        else:
            return


def by_number(message: bytes) -> dict[int, int | bytes]:
    """The fields of a message without repeated ones; of repeated ones the last."""
    return dict(fields(message))


def text(value: int | bytes | None) -> str:
    """Empty for what is no text."""
    return value.decode(errors="replace") if isinstance(value, bytes) else ""


def _varint(message: bytes, at: int) -> tuple[int, int]:
    """A number and where it ends; past the end of `message` for one that is cut."""
    value = 0
    for shift in range(0, 70, 7):
        if at >= len(message):
            break
        value |= (message[at] & 0x7F) << shift
        at += 1
        if message[at - 1] < 0x80:
            return value, at
    return 0, len(message) + 1
