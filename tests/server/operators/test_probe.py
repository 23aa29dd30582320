"""popcorn_probe, which shares no code with the server, runs every command of an operator."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.server.operators.conftest import ADMIN_TOKEN
from tests.server.operators.problems import COMPETITION, problem_files, zipped
from tests.server.popcorn import SUBMISSION
from tests.shared import SHARED

PROBE = SHARED / "tools" / "popcorn_probe.py" if SHARED else None
pytestmark = pytest.mark.skipif(
    PROBE is None or not PROBE.is_file(), reason="popcorn_probe is not beside the checkout"
)


@pytest.fixture
def probe(desk, tmp_path):
    """Run a command; its exit code, what it printed as JSON, and its message."""

    def run(*words, cli_id="alice-cli-id"):
        options = ["--base", desk.base_url, "--cli-id", cli_id, "--admin-token", ADMIN_TOKEN]
        command = [sys.executable, PROBE, *options, "--strict", "--json", "--save-dir", tmp_path]
        done = subprocess.run([*command, *words], capture_output=True, check=False)
        assert b"Traceback" not in done.stderr, done.stderr.decode()
        record = json.loads(done.stdout)
        assert record["findings"] == [], words
        return done.returncode, record

    return run


@pytest.fixture
def said(probe):
    """The JSON that a command got, which must satisfy the strict client."""

    def ask(*words, **options):
        code, record = probe(*words, **options)
        assert code == 0, record["message"]
        return json.loads(record["exchanges"][-1]["body"])

    return ask


def test_a_competition_is_set_up_and_taken_down(said, archives):
    competition = COMPETITION.replace("rowsum_demo", "cup").replace("transpose_demo", "cup2")
    archives.serve(zipped(problem_files(**{"problems/demo.yaml": competition})))

    made = said("admin", "update-problems", "--problem-set", "demo", "--closed")
    forced = said("admin", "update-problems", "--force")
    codes = said("admin", "generate-invites", "--leaderboards", "cup", "cup2", "--count", "2")
    joined = said("join", codes["codes"][0])
    listed = said("admin", "list-invites", "cup")
    gpus = said("gpus", "cup")
    revoked = said("admin", "revoke-invite", codes["codes"][0])
    deleted = [said("admin", "delete-leaderboard", name) for name in ("cup", "cup2")]

    assert made["created"] == ["cup", "cup2"]
    assert [each["reason"] for each in forced["skipped"]] == ["unchanged"] * 2
    assert joined["leaderboards"] == ["cup", "cup2"]
    assert [each["user_id"] for each in listed["invites"]] == ["id-alice", None]
    assert gpus == ["B200", "H100"]
    assert revoked["was_claimed"] is True
    assert [each["leaderboard"] for each in deleted] == ["cup", "cup2"]


def test_an_operators_other_commands(said, desk, problems_dir, make_board):
    make_board("probed_py")

    assert said("admin", "stop")["accepts_jobs"] is False
    assert said("admin", "start")["accepts_jobs"] is True
    assert said("admin", "create-leaderboard", "probed_py")["leaderboard"] == "probed_py-dev"
    assert "probed_py-dev" in [board["name"] for board in said("leaderboards")]
    with desk.client() as client:
        client.post(
            "/profile/probed_py-dev/H100",
            files={"file": ("submission.py", SUBMISSION, "")},
            headers={"Prefer": "respond-async"},
        ).raise_for_status()
    (row,) = desk.rows("SELECT max(id) AS id FROM leaderboards_submission")
    number = str(row["id"])
    assert said("admin", "get-submission", number)["submission"]["submission_id"] == row["id"]
    assert said("admin", "stats")["stats"]["num_submissions"] >= 1
    assert "total.id-alice" in said("admin", "stats", "--last-day")["stats"]
    assert said("admin", "delete-submission", number)["submission_id"] == row["id"]
    assert said("admin", "delete-leaderboard", "probed_py-dev", "--force")["force"] is True


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["join", "nobody-has-this"], "400"),
        (["gpus", "nothing"], "404"),
        (["admin", "get-submission", "999999"], "404"),
        (["admin", "delete-submission", "999999"], "404"),
        (["admin", "delete-leaderboard", "nothing"], "404"),
        (["admin", "create-leaderboard", "../outside"], "400"),
        (["admin", "generate-invites", "--leaderboards", "nothing"], "404"),
        (["admin", "list-invites", "nothing"], "404"),
        (["admin", "revoke-invite", "nothing"], "404"),
        (["admin", "update-problems", "--repository", "some/body"], "403"),
        (["admin", "update-problems", "--branch", "nothing/here"], "404"),
    ],
)
def test_refusals_are_errors_that_the_client_can_print(probe, archives, words, told):
    code, record = probe(*words)

    assert code == 1
    assert told in record["message"]
