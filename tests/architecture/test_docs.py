"""The docs say what the code does, as far as a program can tell."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
# Which field reports are for later steps, and why, is told in docs/field-reports.md.
FIELD_REPORTS = [f"{number:02}" for number in range(1, 44)]


def test_every_setting_is_documented():
    read = re.findall(
        r'env\.\w+\(\s*"([A-Z0-9_]+)"', (ROOT / "kernelbot_site/settings.py").read_text()
    )
    told = (DOCS / "settings.md").read_text()

    assert [name for name in read if f"`{name}`" not in told] == []


@pytest.mark.parametrize("number", FIELD_REPORTS)
def test_every_field_report_has_a_test_or_a_reason(number):
    told = (DOCS / "field-reports.md").read_text()
    tests = "".join(path.read_text() for path in (ROOT / "tests").rglob("test_*.py"))

    tested = re.search(rf"FR-{number}\b|fr_?{number}_", tests, re.IGNORECASE)
    row = re.search(rf"^\| FR-{number} \|.*\| (tested|not yet|not ours)", told, re.MULTILINE)

    assert row is not None
    assert (row[1] == "tested") == (tested is not None)


@pytest.mark.parametrize(
    "page", [*sorted(DOCS.rglob("*.md")), ROOT / "README.md"], ids=lambda page: page.name
)
def test_links_between_pages_lead_somewhere(page):
    targets = re.findall(r"\]\((?!https?://)([^)#]+)", page.read_text())

    assert [target for target in targets if not (page.parent / target).exists()] == []
