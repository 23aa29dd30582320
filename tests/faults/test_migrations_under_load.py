"""`migrate` while the processes of the last release serve, as docs/operations.md says of an upgrade."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path

import httpx
import pytest

from runners.backends.fake import FakeRunner
from runners.backends.fake_plan import Plan
from tests.environment import GPU_TYPES
from tests.faults.conftest import RELEASE
from tests.faults.program import Program
from tests.modal.postgres import Postgres, find_programs
from tests.server.popcorn import PATH, form
from tests.server.service import ROOT, free_port, wait_for
from tests.synthetic_reports import write_demo_archive

pytestmark = [pytest.mark.services, pytest.mark.xdist_group("stack")]

READS = ("/leaderboards", "/api/profile-requests/", "/user/submissions", "/submissions/rowsum/B200")


@pytest.fixture
def last_release(tmp_path):
    """A checkout of it."""
    packed = subprocess.run(["git", "archive", RELEASE], cwd=ROOT, capture_output=True, check=True)
    checkout = tmp_path / "last-release"
    checkout.mkdir()
    subprocess.run(["tar", "x"], cwd=checkout, input=packed.stdout, check=True)
    return checkout


@pytest.fixture
def database():
    if find_programs() is None:
        pytest.skip("PostgreSQL is not installed")
    made = Postgres("-c", "max_connections=40")
    yield made
    made.close()


class Release:
    """Web server and dispatcher of one checkout."""

    def __init__(self, checkout: Path, env: dict[str, str], port: int, name: str) -> None:
        self.checkout, self.env = checkout, env
        folder = Path(env["DATA_DIR"])
        web = [sys.executable, "manage.py", "run_web", "--port", str(port)]
        dispatcher = [sys.executable, "manage.py", "run_dispatcher"]
        where = {"cwd": checkout, "env": env}
        self.web = Program(web, log=folder / f"{name}-web.log", is_up=lambda: _lives(port), **where)
        self.dispatcher = Program(
            dispatcher, log=folder / f"{name}-dispatcher.log", is_up=lambda: True, **where
        )

    def run(self, *arguments: str) -> None:
        argv = [sys.executable, *arguments]
        subprocess.run(argv, cwd=self.checkout, env=self.env, check=True)

    def start(self) -> None:
        self.web.start()
        self.dispatcher.start()

    def stop(self) -> None:
        self.web.stop()
        self.dispatcher.stop()


def _lives(port: int) -> bool:
    try:
        return httpx.get(f"http://127.0.0.1:{port}/health", timeout=2, trust_env=False).is_success
    except httpx.HTTPError:
        return False


class Load(threading.Thread):
    """Orders and reads, one after the other, until `end`; a connection for each, as none is kept."""

    def __init__(self, port: int) -> None:
        super().__init__(daemon=True)
        self.base = f"http://127.0.0.1:{port}"
        self.answers: Counter[int] = Counter()
        self.bad: list[str] = []
        self.accepted: list[str] = []
        self._ended = threading.Event()

    def run(self) -> None:
        headers = {"X-Popcorn-Cli-Id": "alice-cli-id", "Prefer": "respond-async"}
        with httpx.Client(base_url=self.base, headers=headers, timeout=60, trust_env=False) as it:
            while not self._ended.is_set():
                order = it.post(PATH, **form(benchmark_index="0"))
                if order.status_code == 202:
                    self.accepted.append(order.json()["id"])
                for answer in (order, *(it.get(path) for path in READS)):
                    self.answers[answer.status_code] += 1
                    if not answer.is_success:
                        self.bad.append(f"{answer.request.url}: {answer.text[:300]}")
                time.sleep(0.1)

    def end(self) -> None:
        self._ended.set()
        self.join()


def test_the_last_release_serves_while_its_tables_become_the_newest(
    tmp_path, last_release, database
):
    port, folder = free_port(), Path(tempfile.mkdtemp(dir=tmp_path))
    env = {
        "PATH": os.environ["PATH"],
        "DJANGO_SETTINGS_MODULE": "kernelbot_site.settings",
        "SECRET_KEY": "only for tests, and long enough for the checks of Django",
        "DEBUG": "1",  # without it there is no fake runner
        "DATA_DIR": str(folder),
        "FAKE_RUNNER_DIR": str(folder / "fake-runs"),
        "DATABASE_URL": database.url,
        "DATABASE_POOL_MAX": "8",
        "GPU_TYPES": json.dumps(GPU_TYPES),
        "PUBLIC_URL": f"http://127.0.0.1:{port}",
        "PROFILE_RATE": "100000/m",
        "IN_FLIGHT_PER_USER": "1000",
        "POLL_EVERY_S": "0.2",
        "LEASE_S": "3",
        # A start that the end of the old dispatcher interrupts is waited for so long.
        "START_LIMIT_S": "10",
        "START_MARGIN_S": "2",
    }
    archive = write_demo_archive(folder / "capture.zip")
    FakeRunner(folder / "fake-runs").plan(Plan(archive=str(archive)))
    old = Release(last_release, env, port, "old")
    new = Release(ROOT, env, port, "new")
    old.run("manage.py", "migrate", "-v0")
    old.run("-m", "tests.server.seed")
    old.start()
    load = Load(port)
    try:
        load.start()
        wait_for(lambda: len(load.accepted) >= 3)
        new.run("manage.py", "migrate", "-v0")
        since = len(load.accepted)
        wait_for(lambda: len(load.accepted) >= since + 3 or load.bad)
    finally:
        load.end()
        old.stop()
    assert load.bad == [], load.answers

    new.start()
    try:
        wait_for(lambda: not database.rows("SELECT 1 FROM runners_job WHERE finished_at IS NULL"))
        for path in READS:
            url = f"http://127.0.0.1:{port}{path}"
            headers = {"X-Popcorn-Cli-Id": "alice-cli-id"}
            assert httpx.get(url, headers=headers, timeout=60, trust_env=False).is_success, path
    finally:
        new.stop()
    ended = database.rows(
        "SELECT r.id, j.status FROM profiling_profilerequest r JOIN runners_job j ON j.id = r.job_id"
    )
    assert {str(row["id"]) for row in ended} == set(load.accepted)
    assert {row["status"] for row in ended} == {"succeeded"}
