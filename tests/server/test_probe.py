"""popcorn_probe, which shares no code with the server, has nothing to say."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.server.popcorn import SUBMISSION
from tests.server.service import wait_for
from tests.shared import SHARED

PROBE = SHARED / "tools" / "popcorn_probe.py" if SHARED else None
pytestmark = pytest.mark.skipif(
    PROBE is None or not PROBE.is_file(), reason="popcorn_probe is not beside the checkout"
)


@pytest.fixture
def probe(service, tmp_path):
    """Run the probe; its exit code and its record."""
    submission = tmp_path / "submission.py"
    submission.write_bytes(SUBMISSION)

    def probe(*options, cli_id="alice-cli-id", base=service.base_url):
        command = [sys.executable, PROBE, "--base", base, "--cli-id", cli_id, "--strict", "--json"]
        command += ["--save-dir", tmp_path, "submit", submission, "--leaderboard", "rowsum"]
        done = subprocess.run([*command, "--profile", *options], capture_output=True, check=False)
        assert b"Traceback" not in done.stderr, done.stderr.decode()
        return done.returncode, json.loads(done.stdout)

    return probe


def test_a_profile_satisfies_the_strict_client(probe):
    code, record = probe()

    assert record["findings"] == []
    assert code == 0, record["message"]
    reports = [each for each in record["files"] if each["path"].endswith(".ncu-rep")]
    assert len(reports) == 3


def test_capture_options_and_a_base_with_a_slash_satisfy_it_too(probe, service):
    code, record = probe(
        "--benchmark-index", "1", "--ncu-kernel-name", "regex:rowsum",
        "--ncu-kernel-name-base", "demangled", "--ncu-launch-count", "3",
        base=service.base_url + "/",
    )  # fmt: skip

    assert record["findings"] == []
    assert code == 0, record["message"]
    (manifest,) = [each for each in record["files"] if each["path"].endswith("manifest.json")]
    assert json.loads(Path(manifest["path"]).read_text())["profile_metadata"][
        "capture_options"
    ] == {
        "benchmark_index": 1,
        "ncu_kernel_name": "regex:rowsum",
        "ncu_kernel_name_base": "demangled",
        "ncu_launch_count": 3,
    }


def test_a_wrong_kernel_is_not_passed_over_in_silence(probe, service):
    service.plan(passed=False)

    code, record = probe()

    assert record["findings"] == []
    assert code == 0


@pytest.mark.parametrize(
    ("options", "cli_id", "words"),
    [
        (["--gpu", "MI300"], "alice-cli-id", "400"),
        (["--benchmark-index", "3"], "alice-cli-id", "0 to 2"),
        ([], "nobody", "401"),
        ([], "mallory-cli-id", "403"),
    ],
)
def test_refusals_are_errors_that_the_client_can_print(probe, options, cli_id, words):
    """FR-39."""
    code, record = probe(*options, cli_id=cli_id)

    assert record["findings"] == []
    assert code == 1
    assert words in record["message"]


def test_failed_and_empty_captures_are_errors_to_it(probe, service):
    """FR-39: exit code 0 is for good captures only."""
    from runners.gpu.contract import Failure, FailureKind

    empty = Failure(kind=FailureKind.NO_KERNEL_CAPTURED, message="no kernel was captured")
    service.plan(failures={"profile.1": empty})

    code, record = probe()

    assert record["findings"] == []
    assert code == 1
    assert "no kernel was captured" in record["message"]
    assert len([f for f in record["files"] if f["path"].endswith(".ncu-rep")]) == 2


def test_the_service_still_answers_afterwards(service):
    with service.client() as client:
        assert wait_for(lambda: client.get("/ready").is_success)
