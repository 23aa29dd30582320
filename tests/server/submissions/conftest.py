"""The CPU example problem, which the local runner really runs."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.server.service import ROOT, wait_for
from tests.shared import SHARED

CPU = ROOT / "examples/problems/rowsum_cpu"
PROBE = SHARED / "tools" / "popcorn_probe.py" if SHARED else None
RIGHT = (CPU / "submission.py").read_bytes()
WRONG = b"def custom_kernel(rows):\n    return [0.0 for _ in rows]\n"


@pytest.fixture(scope="session")
def with_examples(shared_service):
    subprocess.run(
        [sys.executable, "manage.py", "sync_problems", "examples"],
        cwd=ROOT,
        env=shared_service.env | {"DEBUG": "1"},
        check=True,
        stdout=subprocess.DEVNULL,
    )
    return shared_service


@pytest.fixture
def cpu(service, with_examples):
    """The shared service, with a leaderboard `rowsum_cpu` on CPU."""
    return service


@pytest.fixture
def upload(service):
    """POST a file; the answer."""

    def call(
        path, content=RIGHT, cli_id="alice-cli-id", name="submission.py", headers=None, **form
    ):
        with service.client(cli_id) as client:
            files = {"file": (name, content, "")}
            return client.post(path, files=files, data=form, headers=headers)

    return call


@pytest.fixture
def wait_until_done(service):
    """Poll a submission as the CLI does; what the last poll said."""

    def call(number, cli_id="alice-cli-id"):
        with service.client(cli_id) as client:

            def done():
                answer = client.get(f"/user/submissions/{number}")
                assert answer.status_code == 200, answer.text
                return answer.json() if answer.json()["done"] else None

            return wait_for(done, patience_s=120)

    return call


@pytest.fixture
def probe(service, tmp_path):
    """Run popcorn_probe --strict; its exit code and its record."""
    if PROBE is None or not PROBE.is_file():
        pytest.skip("popcorn_probe is not beside the checkout")

    def call(*words, cli_id="alice-cli-id"):
        command = [sys.executable, PROBE, "--base", service.base_url, "--cli-id", cli_id]
        command += ["--brev-base", service.base_url, "--strict", "--json", "--timeout-cap", "120"]
        command += ["--save-dir", tmp_path / "saved", *words]
        done = subprocess.run(list(map(str, command)), capture_output=True, check=False)
        assert b"Traceback" not in done.stderr, done.stderr.decode()
        record = json.loads(done.stdout)
        assert record["findings"] == []
        return done.returncode, record

    return call
