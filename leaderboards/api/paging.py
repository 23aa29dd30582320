"""`limit` and `offset` of lists that the CLI and the web front end ask for."""

from __future__ import annotations

import re
from typing import NamedTuple

from rest_framework.exceptions import ValidationError
from rest_framework.request import Request

from runners.exceptions import ServiceError

_INTEGER = re.compile(r"[+-]?[0-9]+", re.ASCII)
# Beyond it nothing is listed any more, and no column takes the number.
OFFSET_MAX = 2**31 - 1


class BadPage(ServiceError):
    code = "bad_page"


class Page(NamedTuple):
    limit: int
    offset: int


def read_page(request: Request, *, default: int, maximum: int) -> Page:
    """Raises BadPage (400) for a number out of range, ValidationError (422) for none."""
    return Page(
        limit=_read(request, "limit", default, 1, maximum),
        offset=_read(request, "offset", 0, 0, OFFSET_MAX),
    )


def _read(request: Request, name: str, default: int, lowest: int, highest: int) -> int:
    sent = request.query_params.get(name, "")
    if not sent:
        return default
    if not _INTEGER.fullmatch(sent):
        raise ValidationError({name: "a whole number is wanted"})
    # Longer than any number that is in range, and too long to convert.
    value = int(sent) if len(sent) < 20 else highest + 1
    if not lowest <= value <= highest:
        raise BadPage(f"{name} must be from {lowest} to {highest}, got {sent[:20]}")
    return value
