"""Reads one report with NVIDIA's library and prints what it found as one JSON document.

A program of its own, since a damaged report can crash the library and since its memory is never
freed; run it with `limited.py`. Of NaN and infinity only the state is printed, as JSON has no
number for them.

    python -I child.py REPORT
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

if __name__ == "__main__":  # -I leaves only the installed packages to import from
    sys.path.append(str(Path(__file__).resolve().parents[2]))

from profiling.reports.launch import Tables, read_launch
from profiling.reports.text import storable

LAUNCHES_KEPT = 200
UNAVAILABLE_KEPT = 500
VALUES_KEPT = 200_000

Json = dict[str, Any]


def read(path: str) -> Json:
    """All launches are looked at; the first `LAUNCHES_KEPT` of them are told one by one.

    The form is that of `facts.ReaderDocument`.
    """
    import ncu_report  # a large library, for this process alone

    launches: list[Json] = []
    total = nameless = failed = counters = unusable = 0
    tables = Tables(VALUES_KEPT)
    context = ncu_report.load_report(path)
    for range_index in range(context.num_ranges()):
        launch_range = context.range_by_idx(range_index)
        for index in range(launch_range.num_actions()):
            keep = total < LAUNCHES_KEPT
            place = (range_index, total)
            launch = read_launch(launch_range.action_by_idx(index), place, tables, keep=keep)
            total += 1
            nameless += not launch["name"]
            failed += launch["failed"]
            if not launch["failed"]:
                counters += launch["counters"]
                unusable += launch["counters_unusable"]
            if keep:
                launches.append(launch)
    unavailable = sorted(tables.unavailable.items())
    return {
        "launch_count": total,
        "nameless": nameless,
        "failed": failed,
        "counters": counters,
        "counters_unusable": unusable,
        "launches": launches,
        "sections": sorted(tables.sections.values(), key=lambda section: section["order"]),
        "units": tables.units,
        "metrics_left_out": tables.left_out,
        "unavailable_count": len(unavailable),
        "unavailable": [
            {"name": name, "state": state, "launches": count}
            for (name, state), count in unavailable[:UNAVAILABLE_KEPT]
        ],
    }


def run(read: Any) -> None:
    """Print what `read` finds in the report that the first argument names, or its refusal."""
    # The library may print; the document must stay alone on its way out.
    document = os.fdopen(os.dup(1), "w", encoding="ascii")
    os.dup2(2, 1)
    with document:
        try:
            found = read(sys.argv[1])
        except Exception as error:  # noqa: BLE001  whatever it is, the parent shall hear of it
            said = f"{type(error).__name__}: {error}".replace(sys.argv[1], "the report")
            found = {"refused": storable(said, 500)}
        json.dump(found, document, allow_nan=False)
    # The library is not trusted to take itself down either.
    os._exit(0)


if __name__ == "__main__":
    run(read)
