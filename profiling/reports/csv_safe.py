"""CSV that a spreadsheet does not take for a program: names in it are a stranger's text."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable

# Read as formulas by spreadsheets. A negative number is none.
_FORMULA = re.compile(r"[=+@\t\r]|-(?![0-9.]+$)")


def row(fields: Iterable[object]) -> str:
    """A line with all of its fields in quotes; what looks like a formula begins with "'"."""
    out = io.StringIO()
    writer = csv.writer(out, quoting=csv.QUOTE_ALL, lineterminator="\n")
    writer.writerow(["" if field is None else _harmless(str(field)) for field in fields])
    return out.getvalue()


def _harmless(text: str) -> str:
    return f"'{text}" if _FORMULA.match(text) else text
