"""What differs between two versions of a task, as a person reads it."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator
from typing import Any

from leaderboards.models import TaskRevision
from leaderboards.task_definition import TaskDefinition
from runners.gpu import wire

# Of the text, and of a file that is compared line by line, which takes quadratic time at worst.
SHOWN_CHARS = 200_000
COMPARED_LINES = 5_000


def show_differences(old: TaskRevision, new: TaskRevision) -> str:
    """A unified diff of the settings and of each file; empty when nothing differs."""
    before, after = _texts(old.definition), _texts(new.definition)
    names = [*before, *(name for name in after if name not in before)]
    text = "".join(_compare(name, before.get(name, ""), after.get(name, "")) for name in names)
    return text if len(text) <= SHOWN_CHARS else f"{text[:SHOWN_CHARS]}\n… and more"


def _texts(task: TaskDefinition) -> dict[str, str]:
    """The settings as text of a name that no file has, and the files."""
    encoded: dict[str, Any] = wire.encode(task)
    files: dict[str, str] = encoded.pop("files")
    return {"(settings)": "".join(_lines_of(encoded)), **files}


def _lines_of(settings: dict[str, Any]) -> Iterator[str]:
    """One line for each value, and for each test and benchmark."""
    for name, value in settings.items():
        if isinstance(value, list):
            for index, item in enumerate(value):
                yield f"{name}[{index}]: {json.dumps(item)}\n"
        else:
            yield f"{name}: {json.dumps(value)}\n"


def _compare(name: str, old: str, new: str) -> str:
    if old == new:
        return ""
    before, after = old.splitlines(keepends=True), new.splitlines(keepends=True)
    if len(before) + len(after) > COMPARED_LINES:
        return f"--- {name}\n+++ {name}\n(changed; too long to compare here)\n"
    lines = difflib.unified_diff(before, after, name, name)
    return "".join(line if line.endswith("\n") else f"{line}\n" for line in lines)
