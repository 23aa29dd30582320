"""Frozen dataclasses to plain JSON values and back; what does not fit exactly is refused.

What comes back from a GPU container was written beside a stranger's code, so decoding trusts
nothing: unknown and missing fields, wrong types and non-finite numbers all raise `WireError`.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import math
import re
import types
import typing
from enum import StrEnum
from typing import Any, get_args, get_origin

_UNSTORABLE = re.compile("[\0\ud800-\udfff]")


class WireError(ValueError):
    """The value does not have the agreed form; the message names the place."""


def encode(value: Any) -> Any:
    """A dataclass as JSON values: tuples become lists, enums their text."""
    if dataclasses.is_dataclass(value):
        return {f.name: encode(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, dict):
        return {key: encode(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [encode(item) for item in value]
    return str(value) if isinstance(value, StrEnum) else value


def dumps(value: Any) -> bytes:
    """A dataclass as one line of ASCII JSON."""
    return json.dumps(encode(value), allow_nan=False).encode("ascii")


def loads[T](kind: type[T], content: bytes, *, max_bytes: int) -> T:
    """Read `kind` from JSON bytes. Raises WireError for all that is not exactly that."""
    if len(content) > max_bytes:
        raise WireError(f"{kind.__name__}: {len(content)} bytes, at most {max_bytes} are read")
    try:
        value = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise WireError(f"{kind.__name__}: not JSON: {error}") from error
    decoded: T = decode(kind, value, kind.__name__)
    return decoded


def decode(kind: Any, value: Any, place: str) -> Any:
    """`value` as `kind`: a dataclass, StrEnum, scalar, `X | None`, tuple[X, ...] or dict[str, X]."""
    if dataclasses.is_dataclass(kind) and isinstance(kind, type):
        return _decode_dataclass(kind, value, place)
    origin = get_origin(kind)
    if origin in (types.UnionType, typing.Union):
        return _decode_union(get_args(kind), value, place)
    if origin is tuple and isinstance(value, list):
        item = get_args(kind)[0]
        return tuple(decode(item, each, f"{place}[{i}]") for i, each in enumerate(value))
    if origin is dict and isinstance(value, dict):
        item = get_args(kind)[1]
        return {
            decode(str, key, place): decode(item, each, f"{place}.{key[:80]}")
            for key, each in value.items()
        }
    if isinstance(kind, type) and issubclass(kind, StrEnum) and isinstance(value, str):
        if value not in list(kind):
            raise WireError(f"{place}: unknown value {value[:80]!r}")
        return kind(value)
    return _decode_scalar(kind, value, place)


def _decode_dataclass(kind: type, value: Any, place: str) -> Any:
    fields = {f.name: f for f in dataclasses.fields(kind)}
    if not isinstance(value, dict):
        raise WireError(f"{place}: an object is wanted")
    if unknown := sorted(set(value) - set(fields)):
        raise WireError(f"{place}: unknown field {unknown[0][:80]!r}")
    required = {f.name for f in fields.values() if _has_no_default(f)}
    if missing := sorted(required - set(value)):
        raise WireError(f"{place}: field {missing[0]!r} is missing")
    hints = _hints(kind)
    return kind(
        **{name: decode(hints[name], each, f"{place}.{name}") for name, each in value.items()}
    )


@functools.cache
def _hints(kind: type) -> dict[str, Any]:
    return typing.get_type_hints(kind)


def _has_no_default(field: dataclasses.Field[Any]) -> bool:
    return field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING


def _decode_union(kinds: tuple[Any, ...], value: Any, place: str) -> Any:
    if value is None and types.NoneType in kinds:
        return None
    if type(value) in kinds:
        return _decode_scalar(type(value), value, place)
    problems = []
    for kind in kinds:
        if kind is types.NoneType:
            continue
        try:
            return decode(kind, value, place)
        except WireError as error:
            problems.append(str(error))
    raise WireError(problems[0] if problems else f"{place}: null is wanted")


def _decode_scalar(kind: Any, value: Any, place: str) -> Any:
    if kind is float and type(value) is int:
        value = float(value)
    if type(value) is not kind:
        raise WireError(f"{place}: {getattr(kind, '__name__', kind)} is wanted")
    if kind is float and not math.isfinite(value):
        raise WireError(f"{place}: a finite number is wanted")
    if kind is str and _is_unstorable(value):
        raise WireError(f"{place}: text with NUL or half a surrogate pair")
    return value


def _is_unstorable(text: str) -> bool:
    """PostgreSQL takes neither NUL nor half of a surrogate pair (FR-15)."""
    return _UNSTORABLE.search(text) is not None
