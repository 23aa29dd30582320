"""popcorn_probe, which shares no code with the server, goes through every mode and command."""

from __future__ import annotations

import json
import re

import pytest

from tests.server.popcorn import SUBMISSION
from tests.server.submissions.conftest import RIGHT, WRONG


@pytest.fixture
def submit(cpu, probe, tmp_path):
    def call(*options, content=RIGHT, **more):
        path = tmp_path / "submission.py"
        path.write_bytes(content)
        return probe("submit", path, *options, **more)

    return call


CPU = ("--leaderboard", "rowsum_cpu", "--gpu", "CPU")
GPU = ("--leaderboard", "rowsum", "--gpu", "B200")


def output_of(record):
    return "\n".join(each["text"] for each in record["output"])


@pytest.mark.parametrize("mode", ["test", "benchmark", "leaderboard"])
def test_each_mode_really_runs_the_example_and_satisfies_the_strict_client(submit, mode):
    code, record = submit(*CPU, "--mode", mode)

    assert code == 0, record["message"]
    shown = output_of(record)
    assert ("score (public) on CPU" in shown) == (mode == "leaderboard")
    if mode == "benchmark":
        assert '"benchmark-count": "3"' in shown


@pytest.mark.parametrize(
    ("mode", "words"), [("test", "mismatch at row 0"), ("leaderboard", "not ranked")]
)
def test_a_wrong_kernel_is_an_error_with_the_reason(submit, mode, words):
    code, record = submit(*CPU, "--mode", mode, content=WRONG)

    assert code == 1
    assert words in record["message"]


def test_a_kernel_that_crashes_shows_its_traceback(submit):
    code, record = submit(*CPU, "--mode", "test", content=b"raise SystemExit('went wrong here')\n")

    assert code == 1
    assert "test failed" in record["message"]


def test_profiles_come_through_all_three_doors(submit):
    for door in (["--profile"], ["--profile-brev"], ["--mode", "profile", "--old-profile"]):
        code, record = submit(*GPU, *door, content=SUBMISSION)

        assert code == 0, (door, record["message"])
        zips = [each for each in record["files"] if each["path"].endswith(".zip")]
        assert len(zips) == 3, door
        assert len({each["path"] for each in zips}) == 3


def test_brev_takes_the_options_that_health_offers(submit):
    code, record = submit(
        *("--leaderboard", "rowsum", "--profile-brev", "--benchmark-index", 1),
        *("--ncu-kernel-name", "regex:rowsum", "--ncu-launch-count", 3),
        content=SUBMISSION,
    )

    assert code == 0, record["message"]
    assert len([each for each in record["files"] if each["path"].endswith(".ncu-rep")]) == 1


def test_list_show_and_delete_go_through_a_submissions_life(submit, probe):
    code, record = submit(*CPU, "--mode", "leaderboard")
    assert code == 0
    accepted = next(each for each in record["exchanges"] if each["method"] == "POST")
    number = json.loads(accepted["body"])["details"]["id"]

    code, listed = probe("submissions", "list", "--leaderboard", "rowsum_cpu")
    assert code == 0
    (line,) = [each for each in output_of(listed).splitlines() if each.startswith(f"{number} ")]
    assert re.search(r"CPU\S* +done +\d[\d.e-]+$", line)

    code, shown = probe("submissions", "show", number)
    assert code == 0
    assert "def custom_kernel" in output_of(shown)

    assert probe("submissions", "delete", number, "--force")[0] == 0
    code, gone = probe("submissions", "show", number)
    assert code == 1
    assert "404" in gone["message"]
    assert f"{number} " not in output_of(
        probe("submissions", "list", "--leaderboard", "rowsum_cpu")[1]
    )
