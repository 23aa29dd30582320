"""From a client with an empty PATH, by way of Modal's client and runtime, to extracted files."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.modal.stack import ROOT, Stack
from tests.server.service import wait_for

pytestmark = pytest.mark.xdist_group("stack")

SUBMISSION = ROOT / "examples/problems/rowsum_cpu/submission.py"


@pytest.fixture(scope="module")
def stack(tmp_path_factory):
    made = Stack(tmp_path_factory.mktemp("whole") / "stack")
    try:
        yield made.prepare().start()
    finally:
        made.close()


def profile(stack: Stack, folder: Path) -> subprocess.CompletedProcess[str]:
    client = Path(__file__).with_name("client.py")
    argv = [sys.executable, "-S", "-E", str(client), stack.base_url, stack.cli_id]
    return subprocess.run(
        [*argv, str(SUBMISSION), str(folder)],
        env={"PATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_profile_goes_the_whole_way_and_its_files_come_back(stack, tmp_path):
    done = profile(stack, tmp_path / "profiles")

    assert done.returncode == 0, done.stdout + done.stderr + stack.log("dispatcher")
    files = {str(p.relative_to(tmp_path)): p for p in tmp_path.rglob("*") if p.is_file()}
    names = ("ncu-details.csv", "ncu-details.txt", "profile.ncu-rep")
    assert set(files) == {f"profiles/profile.{n}/{name}" for n in range(3) for name in names}
    made = (stack.tools / "made.ncu-rep").read_bytes()
    assert files["profiles/profile.1/profile.ncu-rep"].read_bytes() == made
    assert "status:" in done.stdout

    (call,) = stack.modal.calls()
    assert call["output"]["dataFormat"] == "DATA_FORMAT_CBOR"
    (job,) = stack.rows("select * from runners_job")
    assert (job["status"], job["external_id"], job["attempt"]) == ("succeeded", call["id"], 1)


def test_what_is_stored_in_s3_is_what_was_captured(stack, tmp_path):
    if not stack.s3.keys():
        profile(stack, tmp_path / "profiles")
    artifacts = stack.rows("select * from runners_artifact")

    assert sorted(a["file"] for a in artifacts) == sorted(stack.s3.keys())
    for artifact in artifacts:
        body = stack.s3.client().get_object(Bucket="reports", Key=artifact["file"])["Body"].read()
        assert hashlib.sha256(body).hexdigest() == artifact["sha256"]
        (tmp_path / "stored.zip").write_bytes(body)
        assert "profile.ncu-rep" in zipfile.ZipFile(tmp_path / "stored.zip").namelist()


def test_nothing_is_left_behind_on_the_dispatchers_disk(stack, tmp_path):
    profile(stack, tmp_path / "profiles")

    wait_for(lambda: not list((stack.folder / "modal-spool").iterdir()))


def test_the_web_server_has_neither_the_token_nor_the_client(stack):
    environment = Path(f"/proc/{stack.pid('web')}/environ").read_text()
    maps = Path(f"/proc/{stack.pid('web')}/maps").read_text()

    assert "MODAL_TOKEN" not in environment
    assert "/modal" not in maps
    assert "/grpclib" not in maps


def test_an_operator_sees_what_is_deployed(stack):
    shown = subprocess.run(
        [sys.executable, "manage.py", "modal_status"],
        cwd=ROOT,
        env=stack._debug,
        capture_output=True,
        text=True,
        check=False,
    )

    assert shown.returncode == 0, shown.stderr
    assert "L4: run_l4 on [('L4', 1)]" in shown.stdout
