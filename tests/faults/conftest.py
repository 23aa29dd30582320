"""A clone without history has no last release to upgrade from: `.ci/run` says so then."""

from __future__ import annotations

import json
import subprocess

from tests.server.service import ROOT

RELEASE = json.loads((ROOT / "tests/releases.json").read_text())[-1]["commit"]
LOOK = ["git", "cat-file", "-e", f"{RELEASE}^{{commit}}"]
HAS_HISTORY = subprocess.run(LOOK, cwd=ROOT, capture_output=True, check=False).returncode == 0
collect_ignore = [] if HAS_HISTORY else ["test_migrations_under_load.py"]
