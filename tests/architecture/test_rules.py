"""House rules that a reader cannot see break: each fails with the place."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
APPS = ("kernelbot_site", "profiling", "leaderboards", "runners")
TRACKED = subprocess.run(
    ["git", "ls-files", "-co", "--exclude-standard"],
    cwd=ROOT,
    capture_output=True,
    text=True,
    check=True,
).stdout.split()
CODE = [ROOT / name for name in TRACKED if name.endswith(".py") and (ROOT / name).is_file()]


def status_writes(path: Path) -> list[str]:
    """Places that assign `job.status` or update the status of Job rows."""
    tree = list(ast.walk(ast.parse(path.read_text())))
    targets = [t for node in tree if isinstance(node, ast.Assign) for t in node.targets]
    assigned = [
        target.lineno
        for target in targets
        if isinstance(target, ast.Attribute)
        and target.attr == "status"
        and "job" in ast.unparse(target.value).lower()
    ]
    updated = [
        node.lineno
        for node in tree
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in ("update", "bulk_update")
        and any(keyword.arg == "status" for keyword in node.keywords)
    ]
    return [f"{path.name}:{line}" for line in assigned + updated]


def test_only_transitions_writes_a_status():
    apps = [p for p in CODE if p.relative_to(ROOT).parts[0] in APPS and "migrations" not in p.parts]

    places = [place for p in apps for place in status_writes(p)]

    assert [place for place in places if not place.startswith("transitions.py")] == []
    assert places, "the rule must see the one writer"


def test_no_file_is_longer_than_a_reader_can_hold():
    read = [p for p in CODE if "migrations" not in p.parts]  # those are generated
    lines = {str(p.relative_to(ROOT)): len(p.read_text().splitlines()) for p in read}

    assert {name: count for name, count in lines.items() if count > 400} == {}


def test_the_top_level_is_what_was_agreed():
    fixed = {"kernelbot_site", "profiling", "leaderboards", "runners", "tests", "docs"}
    fixed |= {"manage.py", "pyproject.toml"}

    assert fixed <= {name.split("/")[0] for name in TRACKED}


def test_nothing_names_a_path_of_the_machine_it_was_written_on():
    marks = re.compile("/" + "work/|pypi" + r"\.org|files\.pythonhosted")
    texts = (ROOT / name for name in TRACKED if not name.endswith((".zip", ".ncu-rep", ".png")))

    hits = [str(p.relative_to(ROOT)) for p in texts if p.is_file() and marks.search(p.read_text())]

    assert hits == []


@pytest.mark.parametrize("module", ["kernelbot_site.asgi", "kernelbot_site.urls"])
def test_a_web_process_never_imports_modal(module):
    program = (
        f"import django; django.setup(); import {module}, sys; sys.exit('modal' in sys.modules)"
    )

    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=ROOT,
        env={"DJANGO_SETTINGS_MODULE": "kernelbot_site.settings", "SECRET_KEY": "x"},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr


def test_the_gpu_side_runs_without_site_packages():
    program = "import pkgutil, importlib, runners.gpu as g\n" + (
        "for m in pkgutil.iter_modules(g.__path__):\n"
        "    if m.name != '__main__': importlib.import_module(f'runners.gpu.{m.name}')"
    )

    done = subprocess.run(
        [sys.executable, "-S", "-E", "-c", program],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr
