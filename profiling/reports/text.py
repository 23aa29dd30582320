"""Text from a report, made fit for a database, a terminal and other people's eyes.

Standard library only, since the child processes import it.
"""

from __future__ import annotations

import re
from functools import lru_cache

NAME_CHARS = 1_000  # of a kernel or metric name, and of a value that is text
MESSAGE_CHARS = 4_000

# No database takes NUL or half of a surrogate pair, and no terminal should get an escape. What
# turns the direction of writing makes a line look like another one.
_UNFIT_IN_LINES = r"\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\u200e\u200f\u2028-\u202e\u2066-\u2069"
_UNFIT = re.compile(rf"[\t\n{_UNFIT_IN_LINES}]")
_NOT_PRINTABLE = re.compile(f"[{_UNFIT_IN_LINES}]")

# Somebody's own folder with its name (blanks only where more of a path follows), then any other
# path but its last part. Addresses of the web stay: their slashes follow a letter, "/" or ":".
_HOME = re.compile(
    r"""(?:\b[A-Za-z]:)?(?<![\w/.])[\\/]+(?:home|Users)[\\/]+"""
    r"""(?:[^\\/\n"':]{1,64}[\\/]+|[^\\/\s"':,;)]+)""",
    re.IGNORECASE,
)
_FOLDERS = re.compile(r"""(?:\b[A-Za-z]:|(?<![\w/.:\\]))[\\/]+(?:[^\\/\s:"'<>|(),;]+[\\/]+)+""")

# Links in the messages of rules, as the library's documentation tells them.
_URL = re.compile(r"@url:([^:@]+):([^@\s]+)@")
_LINK = re.compile(r"@(?:section|sass):[^:@]*:([^@]*)@|@source:[^@]*?:\d+:([^@]*)@")


def storable(text: str, chars: int = NAME_CHARS) -> str:
    """`text` with a mark for each character that is unfit, and cut, which "…" at its end says."""
    text = text if len(text) <= chars else text[: chars - 1] + "…"
    return _UNFIT.sub("\N{REPLACEMENT CHARACTER}", text)


def printable(text: str) -> str:
    """`text` of one or more lines, fit for a terminal."""
    return _NOT_PRINTABLE.sub("\N{REPLACEMENT CHARACTER}", text)


@lru_cache(maxsize=20_000)
def shareable(text: str, chars: int = NAME_CHARS) -> str:
    """Storable, and of a path only what comes after its folders: those name people (FR-22)."""
    text = storable(text, chars)
    return _FOLDERS.sub("", _HOME.sub("", text)) if "/" in text or "\\" in text else text


def message(text: str) -> str:
    """The message of a rule as ncu prints it: links are their text, and their address if any."""
    text = _LINK.sub(lambda found: found[1] or found[2] or "", _URL.sub(r"\1 (\2)", text))
    return shareable(" ".join(text.split()), MESSAGE_CHARS)


def file_name(path: str) -> str:
    """The last part of a path of any system."""
    return storable(re.split(r"[\\/]", path)[-1], 255)
