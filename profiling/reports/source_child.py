"""Prints SASS and source of a report's hot spots: two lines of JSON, SASS first.

A second program beside `child.py`: disassembly takes as long as all the rest, and asking for the
source files was seen to crash on a damaged report. What was printed before a crash stays good.

    python -I source_child.py REPORT
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any, TextIO

if __name__ == "__main__":  # -I leaves only the installed packages to import from
    sys.path.append(str(Path(__file__).resolve().parents[2]))

from profiling.reports.child import LAUNCHES_KEPT
from profiling.reports.hot_spots import hottest_addresses
from profiling.reports.text import file_name, storable

# Each kernel is disassembled anew; what comes later stays without.
SECONDS = 20.0
LINE_CHARS = 200

Json = dict[str, Any]


def main(path: str, out: TextIO) -> None:
    import ncu_report  # a large library, for this process alone

    context = ncu_report.load_report(path)
    actions = [
        launches.action_by_idx(index)
        for launches in (context.range_by_idx(at) for at in range(context.num_ranges()))
        for index in range(min(launches.num_actions(), LAUNCHES_KEPT))
    ][:LAUNCHES_KEPT]
    spots, lines = _instructions(actions)
    _tell(out, {"spots": spots})
    _tell(out, {"lines": _source_lines(actions, lines)})


def _instructions(actions: list[Any]) -> tuple[list[Json], dict[str, set[int]]]:
    """What stands at each hot spot, and which lines of which files that takes."""
    until = time.monotonic() + SECONDS
    spots: list[Json] = []
    lines: dict[str, set[int]] = {}
    for index, action in enumerate(actions):
        for offset, address in hottest_addresses(action).items():
            if time.monotonic() > until:
                return spots, lines
            place = action.source_info(address)
            name, line = (place.file_name(), int(place.line())) if place else ("", 0)
            spots.append(
                {
                    "launch": index,
                    "offset": offset,
                    "sass": storable((action.sass_by_pc(address) or "").strip(), LINE_CHARS),
                    "file": file_name(name),
                    "line": line if line > 0 else None,
                    "path": len(lines) if name and name not in lines else _position(lines, name),
                }
            )
            if name and line > 0:
                lines.setdefault(name, set()).add(line)
    return spots, lines


def _position(lines: dict[str, set[int]], name: str) -> int | None:
    """Files are told by number: two may have the same last part."""
    return list(lines).index(name) if name in lines else None


def _source_lines(actions: list[Any], wanted: dict[str, set[int]]) -> list[Json]:
    found: dict[tuple[int, int], str] = {}
    for action in actions if wanted else ():
        files = dict(action.source_files())
        for number, (name, lines) in enumerate(wanted.items()):
            content = files.get(name) or ""
            rows = content.split("\n")
            for line in lines:
                if content and line <= len(rows):
                    found[number, line] = storable(rows[line - 1].strip(), LINE_CHARS)
    return [{"path": at, "line": line, "source": text} for (at, line), text in found.items()]


def _tell(out: TextIO, said: Json) -> None:
    out.write(json.dumps(said, allow_nan=False) + "\n")
    out.flush()


if __name__ == "__main__":
    # The library may print; the document must stay alone on its way out.
    document = os.fdopen(os.dup(1), "w", encoding="ascii")
    os.dup2(2, 1)
    main(sys.argv[1], document)
    os._exit(0)
