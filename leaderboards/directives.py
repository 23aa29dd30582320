"""`#!POPCORN <key> <value…>` lines at the top of a submission (wire-contract.md, 10.2)."""

from __future__ import annotations

import io
from dataclasses import dataclass

from leaderboards.exceptions import BadDirective

_MARKS = ("#!POPCORN", "//!POPCORN")
_KEYS = {"leaderboard": "leaderboard", "gpu": "gpus", "gpus": "gpus"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Directives:
    """What a file says about itself, with values as written. `gpus` is only a default of clients."""

    leaderboard: str | None = None
    gpus: tuple[str, ...] = ()


def read_directives(text: str) -> Directives:
    """Read the first unbroken block of comment lines. Raises BadDirective, naming the line."""
    found: dict[str, tuple[str, ...]] = {}
    lines = io.StringIO(text.removeprefix("\ufeff"), newline=None)
    for number, line in enumerate(lines, start=1):
        if not line.startswith(("#", "//")):
            break
        mark, *words = line.split()
        if mark not in _MARKS:
            continue
        key, values = _read_words(words, number)
        if key in found:
            raise BadDirective(f"line {number}: the !POPCORN directive {words[0]!r} is repeated")
        found[key] = values
    leaderboard = found.get("leaderboard")
    return Directives(
        leaderboard=leaderboard[0] if leaderboard else None, gpus=found.get("gpus", ())
    )


def _read_words(words: list[str], number: int) -> tuple[str, tuple[str, ...]]:
    if not words:
        raise BadDirective(
            f"line {number}: !POPCORN needs a key and a value, "
            "for example `#!POPCORN leaderboard <name>`"
        )
    key = _KEYS.get(words[0].lower())
    if key is None:
        raise BadDirective(
            f"line {number}: unknown !POPCORN directive {words[0][:64]!r}, "
            "only leaderboard and gpu are known"
        )
    if len(words) == 1:
        raise BadDirective(f"line {number}: the !POPCORN directive {words[0]!r} has no value")
    return key, tuple(words[1:])
