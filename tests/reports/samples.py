"""The real reports beside the checkout, and what another reader found in them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.shared import SHARED

SAMPLES = SHARED / "ncu-samples" if SHARED else None
INDEX: list[dict[str, Any]] = (
    json.loads((SAMPLES / "index.json").read_text()) if SAMPLES and SAMPLES.is_dir() else []
)

needs_samples = pytest.mark.skipif(not INDEX, reason="the real reports are not beside the checkout")
each_sample = pytest.mark.parametrize(
    "said",
    INDEX or [pytest.param({}, marks=needs_samples)],
    ids=lambda said: said.get("file", "no sample"),
)


def sample(name: str) -> Path:
    assert SAMPLES is not None
    return SAMPLES / name
