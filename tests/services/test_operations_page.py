"""docs/operations.md is run as it stands: its walk in a fresh clone, its queries on real tables."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests.modal.postgres import find_programs
from tests.server.service import ROOT
from tests.services.parts import SEARCHED

pytestmark = [pytest.mark.services, pytest.mark.xdist_group("services")]

PAGE = (ROOT / "docs/operations.md").read_text()
BLOCKS = re.findall(r"<!-- walk -->\n```sh\n(.*?)```", PAGE, re.DOTALL)
QUERIES = re.findall(r"`(SELECT .*?)`", PAGE)


@pytest.fixture
def place():
    """A folder that other users reach too, as pytest's are not."""
    with tempfile.TemporaryDirectory(prefix="kernelbot-walk-") as name:
        os.chmod(name, 0o755)
        yield Path(name)


@pytest.fixture
def clone(place):
    """What is committed and what is not yet, without what git ignores; with this environment."""
    folder = place / "kernelbot"
    listed = ["git", "ls-files", "-co", "--exclude-standard", "-z"]
    names = subprocess.run(listed, cwd=ROOT, check=True, capture_output=True).stdout
    folder.mkdir()
    for name in filter(None, names.decode().split("\0")):
        if (ROOT / name).is_file():
            target = folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes((ROOT / name).read_bytes())
    # Its first command would install the same packages again.
    (folder / ".venv/bin").mkdir(parents=True)
    (folder / ".venv/bin/python").write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    (folder / ".venv/bin/python").chmod(0o755)
    (folder / ".venv/base.done").touch()
    return folder


def programs_for_root(folder: Path) -> str:
    """PostgreSQL refuses to be started by root, and tests often are."""
    if os.geteuid() != 0:
        return ""
    folder.mkdir()
    for name in ("initdb", "pg_ctl"):
        program = find_programs() / name
        script = folder / name
        script.write_text(
            f'#!/bin/sh\nmkdir -p "$2" && chown nobody "$2" && touch "$2.log" && chown nobody "$2.log"\n'
            f'exec setpriv --reuid=nobody --regid=nogroup --clear-groups {program} "$@"\n'
        )
        script.chmod(0o755)
    return f"export PATH={folder}:$PATH\n"


def test_the_walk_from_a_clone_to_a_set_of_processes(place, clone):
    first, *others = BLOCKS
    # The page puts PostgreSQL's programs last; those that become another user come before.
    first = first.replace("mkdir -p", f"{programs_for_root(place / 'bin')}mkdir -p", 1)
    ended = "set -eu\n" + "".join([first, *others]) + "echo WALKED\n"
    cleanup = (
        "trap 'kill $(cat $RUN/*.pid) 2>/dev/null; pg_ctl -D $RUN/postgres stop -m fast' ERR\n"
    )
    walk = subprocess.run(
        ["bash", "-o", "pipefail", "-E", "-c", cleanup + ended],
        cwd=clone,
        env={"PATH": SEARCHED, "HOME": str(place), "LANG": "C.UTF-8"},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )

    assert walk.stdout.endswith("WALKED\n"), walk.stdout + walk.stderr
    assert re.search(r'"status": ?"ok"', walk.stdout)
    assert "event: result" in walk.stdout
    assert 'kernelbot_queue_depth{gpu="B200"} 0.0' in walk.stdout
    assert "files are what was stored" in walk.stdout


@pytest.mark.parametrize("query", QUERIES)
def test_queries_of_the_night_fit_the_tables(whole, query):
    service, _ = whole
    any_key = "00000000-0000-0000-0000-000000000000"

    assert service.rows(query.replace("…", any_key)) is not None


def test_the_page_has_what_is_tested():
    assert len(BLOCKS) == 5
    assert len(QUERIES) >= 9
