"""GET /auth/init: an id for a CLI, which is nobody's yet (wire-contract.md, 3.1)."""

from __future__ import annotations

import subprocess
import sys
import uuid

import pytest

from tests.shared import SHARED


@pytest.mark.parametrize("provider", ["discord", "github"])
def test_an_id_is_a_uuid_and_nobody_s(site, works, provider):
    with site.client(cli_id=None) as client:
        answer = client.get(f"/auth/init?provider={provider}")

    assert answer.status_code == 200
    assert answer.headers["Cache-Control"] == "no-store"
    assert list(answer.json()) == ["state"]
    assert uuid.UUID(answer.json()["state"]).version == 4
    assert works(answer.json()["state"]) == 401


@pytest.mark.parametrize("query", ["", "?provider=", "?provider=gitlab", "?provider=Discord"])
def test_an_unknown_or_missing_provider_is_a_400(site, query):
    before = site.rows("SELECT COUNT(*) AS n FROM leaderboards_clientid")
    with site.client(cli_id=None) as client:
        answer = client.get(f"/auth/init{query}")

    assert answer.status_code == 400
    assert answer.json()["code"] == "unknown_provider"
    assert "discord, github" in answer.json()["detail"]
    assert site.rows("SELECT COUNT(*) AS n FROM leaderboards_clientid") == before


def test_forgotten_ids_are_cleared_away_by_later_ones_and_used_ones_stay(site, issue, works):
    site.execute("DELETE FROM leaderboards_clientid WHERE activated_at IS NULL")
    issue()
    site.execute(
        "UPDATE leaderboards_clientid SET issued_at = '2020-01-01 00:00:00' WHERE kind = 'cli'"
    )

    issue()

    waiting = site.rows("SELECT * FROM leaderboards_clientid WHERE activated_at IS NULL")
    assert len(waiting) == 1
    assert works("alice-cli-id") == 200


def test_an_id_remembers_the_address_that_asked(site, issue):
    issue()

    newest = site.rows("SELECT * FROM leaderboards_clientid ORDER BY id DESC LIMIT 1")[0]

    assert newest["issued_to_address"] == "127.0.0.1"


@pytest.mark.skipif(SHARED is None, reason="the copy of the CLI is not beside the checkout")
@pytest.mark.parametrize("command", ["register", "reregister"])
def test_the_cli_registers(site, tmp_path, command, works):
    config = tmp_path / "popcorn.yaml"
    probe = [SHARED / "tools/popcorn_probe.py", "--base", site.base_url, "--config", config]

    done = subprocess.run(
        [sys.executable, *map(str, probe), "--strict", "--save-dir", tmp_path, command, "github"],
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert config.read_text().startswith("cli_id: ")
