"""YAML of strangers, read value by value, where every complaint names file, line and key.

Nothing is guessed (FR-40): a value has the type that is asked for or is refused, and duplicate
keys are refused. Anchors and aliases mean what they stand for; merge keys (`<<`) are not known.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import yaml

MAX_YAML_BYTES = 1_000_000
# YAML 1.1 reads 010 as 8 and 1:30 as 90, which nobody means.
_MISLEADING_INT = re.compile(r"[-+]?0[0-9_]|.*:")
_CONVERT = yaml.SafeLoader("")
_TAG = "tag:yaml.org,2002:"


class TaskFileError(ValueError):
    """A task or competition file says something that cannot be used; `str` names the place."""

    def __init__(self, message: str, *, path: Path, line: int | None = None, key: str = "") -> None:
        self.path, self.line, self.key, self.message = path, line, key, message
        place = [str(path), *([f"line {line}"] if line else []), *([key] if key else [])]
        super().__init__(f"{', '.join(place)}: {message}")


@dataclass(frozen=True, slots=True)
class Located:
    """One value of a file. `path` is for people, `key` the way to the value: `tests[2].seed`."""

    node: yaml.Node
    path: Path
    key: str

    def error(self, message: str) -> TaskFileError:
        line = self.node.start_mark.line + 1
        return TaskFileError(message, path=self.path, line=line, key=self.key)

    @property
    def is_null(self) -> bool:
        return self._scalar("null") is not None

    def fields(
        self, *, known: Collection[str] | None = None, required: Collection[str] = ()
    ) -> dict[str, Located]:
        """A mapping by key, in the order of the file; None for `known` takes any key."""
        if not isinstance(self.node, yaml.MappingNode):
            raise self.error("a mapping is wanted")
        found: dict[str, Located] = {}
        for key_node, value in self.node.value:
            if key_node.tag == f"{_TAG}merge":
                raise Located(key_node, self.path, self.key).error("merge keys (<<) are not read")
            name = Located(key_node, self.path, self.key).text()
            place = Located(key_node, self.path, f"{self.key}.{name}".lstrip("."))
            if name in found:
                raise place.error("this key is there twice")
            if known is not None and name not in known:
                raise place.error(f"unknown key; known are: {', '.join(sorted(known))}")
            found[name] = Located(value, self.path, place.key)
        if missing := [name for name in required if name not in found]:
            raise self.error(f"the key {missing[0]!r} is missing")
        return found

    def items(self) -> list[Located]:
        if not isinstance(self.node, yaml.SequenceNode):
            raise self.error("a list is wanted")
        return [
            Located(node, self.path, f"{self.key}[{index}]")
            for index, node in enumerate(self.node.value)
        ]

    def text(self) -> str:
        """Text that stays what was written: `yes`, `1.5` and the like must be in quotes."""
        if self._scalar("str") is None:
            raise self.error(f"text is wanted, and {self.shown} is not (write it in quotes)")
        return self._storable()

    def date_text(self) -> str:
        """As written, also where YAML would make a date of it; empty for null."""
        if self.is_null:
            return ""
        return self._storable() if self._scalar("timestamp") else self.text()

    def integer(self) -> int:
        """A signed 64-bit integer: decimal, with or without `_`, or 0x and 0b."""
        node = self._scalar("int")
        if node is None:
            raise self.error(f"a whole number is wanted, not {self.shown}")
        if _MISLEADING_INT.match(node.value):
            raise self.error(f"{self.shown} is octal or base 60 in YAML: write it as decimal")
        number: int = _CONVERT.construct_yaml_int(node)
        if not -(2**63) <= number < 2**63:
            raise self.error(f"{self.shown} does not fit into 64 bits")
        return number

    def seconds(self) -> float:
        """A finite time above zero."""
        node = self._scalar("float")
        value: float = _CONVERT.construct_yaml_float(node) if node else float(self.integer())
        if not 0 < value < 1e6:
            raise self.error(f"a time in seconds is wanted, not {self.shown}")
        return value

    def boolean(self) -> bool:
        node = self._scalar("bool")
        if node is None:
            raise self.error(f"true or false is wanted, not {self.shown}")
        return bool(_CONVERT.construct_yaml_bool(node))

    def choice(self, allowed: Collection[str]) -> str:
        value = self.text()
        if value not in allowed:
            raise self.error(f"{value[:80]!r} is none of: {', '.join(allowed)}")
        return value

    def _scalar(self, tag: str) -> yaml.ScalarNode | None:
        is_one = isinstance(self.node, yaml.ScalarNode) and self.node.tag == _TAG + tag
        return cast("yaml.ScalarNode", self.node) if is_one else None

    def _storable(self) -> str:
        value = str(self.node.value)
        if "\0" in value or any("\ud800" <= char <= "\udfff" for char in value):
            raise self.error("text with NUL or half a surrogate pair")
        return value

    @property
    def shown(self) -> str:
        """How messages call this value."""
        if isinstance(self.node, yaml.ScalarNode):
            return repr(str(self.node.value)[:80])
        return "a list" if isinstance(self.node, yaml.SequenceNode) else "a mapping"


def read_yaml(path: Path, *, root: Path) -> Located:
    """The one document of a file below `root`. Raises TaskFileError, with the path from there."""
    shown = path.relative_to(root)
    if not path.resolve().is_relative_to(root.resolve()):
        raise TaskFileError("it leads out of the checkout", path=shown)
    try:
        text = read_file(path, limit=MAX_YAML_BYTES)
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except ValueError as error:
        raise TaskFileError(str(error), path=shown) from error
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        line = mark.line + 1 if mark else None
        raise TaskFileError(f"not YAML: {error.problem}", path=shown, line=line) from error
    except (yaml.YAMLError, RecursionError) as error:
        raise TaskFileError("not YAML: characters or nesting", path=shown) from error
    if node is None:
        raise TaskFileError("the file is empty", path=shown)
    return Located(node, shown, "")


def read_file(path: Path, *, limit: int) -> str:
    """A regular file's UTF-8 text, line ends as they are. Raises ValueError with the reason."""
    try:
        if not path.is_file():
            raise ValueError("there is no such file")
        with path.open("rb") as file:
            content = file.read(limit + 1)
    except OSError as error:
        raise ValueError(f"the file cannot be read: {error.strerror}") from error
    if len(content) > limit:
        raise ValueError(f"the file is larger than {limit:,} bytes")
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        raise ValueError(f"the file is not UTF-8 text (byte {error.start})") from error
    if "\0" in text:
        raise ValueError("the file contains a NUL byte")
    return text
