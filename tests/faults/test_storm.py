"""A short storm over the whole stack; `python -m tests.faults` is the long one (docs/faults.md)."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path

import pytest

from tests.faults.run import run
from tests.faults.stack import missing_programs

pytestmark = [pytest.mark.services, pytest.mark.xdist_group("stack")]


@pytest.fixture
def folder():
    """One that PostgreSQL's and nginx's own users reach too, as pytest's are not."""
    with tempfile.TemporaryDirectory(prefix="kernelbot-faults-") as name:
        os.chmod(name, 0o755)
        yield Path(name)


def test_a_short_storm_loses_nothing_and_leaves_nothing(folder):
    """FR-24, FR-30."""
    if missing := missing_programs():
        pytest.skip(f"not installed: {', '.join(missing)}")

    outcome = run(folder, seed=11, seconds=8, clients=4)

    told = json.dumps(outcome.summary, indent=1)
    assert outcome.violations == [], told
    assert outcome.summary["faults_in_all"] >= 2, told
    assert outcome.summary["accepted"] >= 1, told
