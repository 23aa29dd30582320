"""What can be said of deploy/ where no systemd and no container engine runs."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
UNITS = sorted((DEPLOY / "systemd").iterdir())
HARDENED = {"NoNewPrivileges=yes", "ProtectSystem=strict", "ProtectHome=yes", "PrivateTmp=yes"}
MODAL_FILE = "dispatcher.env"


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="no systemd-analyze is here")
def test_systemd_finds_nothing_wrong_with_the_units(tmp_path):
    for unit in UNITS:
        here = re.sub(r"/opt/kernelbot/\.venv/bin/python", sys.executable, unit.read_text())
        here = re.sub(r"^(Documentation|User|Group)=.*\n", "", here, flags=re.MULTILINE)
        (tmp_path / unit.name).write_text(here)

    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", *map(str, tmp_path.iterdir())],
        capture_output=True,
        text=True,
        check=False,
    )

    ours = [line for line in done.stderr.splitlines() if "kernelbot" in line]
    assert (done.returncode, ours) == (0, []), done.stderr


def test_every_unit_that_runs_something_is_confined():
    for unit in UNITS:
        if unit.suffix == ".service":
            assert set(unit.read_text().splitlines()) >= HARDENED, unit.name


def test_only_the_dispatcher_is_given_modals_token():
    units = {unit.name for unit in UNITS if MODAL_FILE in unit.read_text()}
    services = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]
    containers = {name for name, each in services.items() if MODAL_FILE in each.get("env_file", [])}
    shared = (DEPLOY / "kernelbot.env.example").read_text()

    assert units == {"kernelbot-dispatcher.service"}
    assert containers == {"dispatcher"}
    assert "MODAL_TOKEN" not in shared


def test_each_variable_of_the_examples_is_a_setting():
    read = (ROOT / "kernelbot_site/settings.py").read_text()
    for name in ("kernelbot.env.example", "dispatcher.env.example"):
        given = re.findall(r"^([A-Z0-9_]+)=", (DEPLOY / name).read_text(), re.MULTILINE)
        assert given
        assert [variable for variable in given if f'"{variable}"' not in read] == []


def test_units_and_containers_run_commands_that_exist():
    texts = [unit.read_text() for unit in UNITS]
    texts += [(DEPLOY / name).read_text() for name in ("compose.yaml", "Dockerfile")]
    named = set(re.findall(r"python[\", ]+manage\.py[\", ]+([a-z_]+)", " ".join(texts)))
    there = {path.stem for path in ROOT.glob("*/management/commands/*.py")}

    assert named >= {"run_web", "run_dispatcher", "purge_deleted", "migrate"}
    assert named - there == {"migrate", "collectstatic"}  # Django's own
