"""The runner's details CSV against the report itself: it is delivered, and never relied on (FR-18).

Columns are found by name, after whatever stands before the header.
"""

from __future__ import annotations

import csv
import io
import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from profiling.reports.details import ReportDetails
from profiling.reports.export import details_csv

_NAMES = ("ID", "Section Name", "Metric Name", "Metric Unit", "Metric Value")
_HEADER_AT_MOST = 10_000  # lines before the header
TOLERANCE = 0.005  # two roundings of one value
EXAMPLES = 3
FIELD_CHARS = 200_000

Key = tuple[str, str, str]
Values = dict[Key, tuple[str, str]]  # value and unit


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    rows: int  # of metrics in the runner's file
    differing: tuple[str, ...]  # in words, a few of them
    differing_count: int


def check_details(details: ReportDetails, lines: Iterable[str]) -> Checked:
    """Never raises: a CSV that cannot be understood has no rows."""
    theirs, ours = _values(lines), _values(details_csv(details))
    found = [
        f"{key[2]} of launch {key[0]} is {_said(theirs.get(key))} there, {_said(value)} here"
        for key, value in ours.items()
        if not _same(theirs.get(key), value)
    ]
    return Checked(rows=len(theirs), differing=tuple(found[:EXAMPLES]), differing_count=len(found))


def _values(lines: Iterable[str]) -> Values:
    rows = _rows(lines)
    places = _places(rows)
    found: Values = {}
    if places is None:
        return found
    for row in rows:
        if len(row) <= max(places):
            continue
        launch, section, metric, unit, value = (row[place] for place in places)
        if launch.isdigit() and metric:
            found.setdefault((launch, section, metric), (value, unit))
    return found


def _rows(lines: Iterable[str]) -> Iterator[list[str]]:
    reader = csv.reader(line[:FIELD_CHARS] for line in lines)
    while True:
        try:
            yield next(reader)
        except csv.Error:
            continue
        except StopIteration:
            return


def _places(rows: Iterator[list[str]]) -> tuple[int, ...] | None:
    for row in itertools.islice(rows, _HEADER_AT_MOST):
        if set(_NAMES) <= set(row):
            return tuple(row.index(name) for name in _NAMES)
    return None


def _same(theirs: tuple[str, str] | None, ours: tuple[str, str]) -> bool:
    if theirs is None or theirs[1] != ours[1]:
        return False
    one, two = (each[0].replace(",", "") for each in (theirs, ours))
    try:
        first, second = float(one), float(two)
    except ValueError:
        return one == two
    return one == two or abs(first - second) <= TOLERANCE * abs(second)


def _said(value: tuple[str, str] | None) -> str:
    return " ".join(value)[:80].rstrip() if value else "missing"


def decoded(content: bytes) -> Iterator[str]:
    return io.StringIO(content.decode(errors="replace"), newline="")
