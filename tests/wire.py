"""Shapes of the wire contract, from the examples beside the checkout or our own copies of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.shared import SHARED

COPIES = Path(__file__).parent / "data" / "wire"


def example(name: str) -> Any:
    """A composed example. The copy must not drift from the original where that is here."""
    copy = json.loads((COPIES / name).read_text())
    if SHARED is not None:
        assert copy == json.loads((SHARED / "design" / "examples" / name).read_text())
    return copy


def assert_shape(value: Any, like: Any, place: str = "$") -> None:
    """The same keys and types all the way down; null in the example stands for anything.

    Items of a list are compared with the item of the example that has the same keys. Maps of
    evaluator results may have any keys.
    """
    if like is None:
        return
    if isinstance(like, dict):
        assert isinstance(value, dict), f"{place} is no object"
        if place.endswith(".result"):
            assert all(isinstance(each, str) for each in value.values()), place
            return
        assert value.keys() == like.keys(), place
        for key, each in value.items():
            assert_shape(each, like[key], f"{place}.{key}")
    elif isinstance(like, list):
        assert isinstance(value, list), f"{place} is no array"
        for index, each in enumerate(value):
            assert_shape(each, _match(each, like, f"{place}[{index}]"), f"{place}[{index}]")
    elif value is None:
        assert not isinstance(like, dict | list), place
    elif isinstance(like, float) and not isinstance(like, bool):
        assert type(value) in (float, int), place
    else:
        assert type(value) is type(like), f"{place}: {value!r} is not like {like!r}"


def _match(value: Any, likes: list[Any], place: str) -> Any:
    if not isinstance(value, dict):
        assert likes, f"{place}: the example's list is empty"
        return likes[0]
    found = [like for like in likes if like.keys() == value.keys()]
    assert found, f"{place}: no item of the example has the keys {sorted(value)}"
    return found[0]
