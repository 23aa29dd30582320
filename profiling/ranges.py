"""HTTP ranges of a file: one contiguous part, so that a broken download goes on (RFC 9110, 14)."""

from __future__ import annotations

import re

from django.http import HttpRequest

_RANGE = re.compile(r"bytes=(?:(\d{1,18})-(\d{0,18})|-(\d{1,18}))")


class Unsatisfiable(Exception):
    """The range that was asked for has nothing of the file."""


def wanted_range(http: HttpRequest, *, size: int, etag: str) -> range | None:
    """The bytes of a file of `size` that a GET asks for; None for all of it.

    Whatever else the headers say, several ranges above all, is answered with the whole file, as is
    an If-Range of another version. Raises Unsatisfiable.
    """
    asked = _RANGE.fullmatch(http.headers.get("Range", "").replace(" ", "").lower())
    if http.method != "GET" or asked is None or http.headers.get("If-Range", etag) != etag:
        return None
    first, last, suffix = asked.groups()
    if suffix is not None:
        found = range(max(0, size - int(suffix)), size)
    else:
        found = range(int(first), min(size, int(last) + 1) if last else size)
        if last and int(last) < int(first):
            return None
    if not found:
        raise Unsatisfiable
    return found
