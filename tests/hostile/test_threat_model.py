"""docs/threat-model.md names tests; each is there."""

from __future__ import annotations

import re

from tests.server.service import ROOT


def test_each_test_that_the_threat_model_names_exists():
    page = (ROOT / "docs/threat-model.md").read_text()
    named = set(re.findall(r"`(test_\w+)`", page))
    files = [path.read_text() for path in (ROOT / "tests").rglob("test_*.py")]
    there = {name for text in files for name in re.findall(r"^def (test_\w+)\(", text, re.M)}

    assert len(named) > 40
    assert named <= there, sorted(named - there)
