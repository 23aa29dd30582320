"""Real dispatcher processes, and a database that they share with the test."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from django.core.management import call_command
from django.db import connections
from django.db.backends.sqlite3.base import DatabaseWrapper

from runners.backends.fake import FakeRunner
from tests.environment import MEASURED

ROOT = Path(__file__).resolve().parents[2]
GPU_TYPES = {
    "B200": {"runner": "fake", "max_in_flight": 4},
    "H100": {"runner": "fake", "max_in_flight": 1},
}
TIMES = {
    "POLL_EVERY_S": "0.1",
    "LEASE_S": "2",
    "START_LIMIT_S": "5",
    "START_MARGIN_S": "0",
    "RETRY_DELAY_S": "0.1",
}


def wait_until(condition, *, seconds=90):
    """Generous, since it only ever waits this long when something is wrong."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.05)


class Dispatchers:
    """`manage.py run_dispatcher`, as often as wanted."""

    def __init__(self, folder: Path, database_url: str) -> None:
        self.folder = folder
        self.fake = FakeRunner(folder / "fake")
        self.processes: list[subprocess.Popen] = []
        self.scratch = folder / "tmp"
        self.scratch.mkdir()
        self.environment = MEASURED | {
            "PATH": os.environ["PATH"],
            "TMPDIR": str(self.scratch),
            "DJANGO_SETTINGS_MODULE": "tests.runners.service_settings",
            "SECRET_KEY": "only for tests",
            "DEBUG": "1",
            "DATA_DIR": str(folder),
            "FAKE_RUNNER_DIR": str(folder / "fake"),
            "DATABASE_URL": database_url,
            "GPU_TYPES": json.dumps(GPU_TYPES),
        }

    def start(self, **times: str) -> subprocess.Popen:
        return self._start(["manage.py", "run_dispatcher"], **times)

    def sweep(self, gate: Path) -> subprocess.Popen:
        """A process that does nothing but end strays, from when the file is there."""
        return self._start(["-m", "tests.runners.sweeping", str(gate)])

    def _start(self, arguments: list[str], **times: str) -> subprocess.Popen:
        with self.log.open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, *arguments],
                cwd=ROOT,
                env=self.environment | TIMES | times,
                stdout=log,
                stderr=log,
            )
        self.processes.append(process)
        return process

    @property
    def log(self) -> Path:
        return self.folder / "dispatchers.log"

    def end(self) -> None:
        for process in self.processes:
            if process.poll() is None:
                process.send_signal(signal.SIGKILL)
            process.wait()
        print(self.log.read_text() if self.log.exists() else "no log")


@pytest.fixture(scope="session")
def migrated_file(tmp_path_factory, django_db_blocker):
    """An empty SQLite database with all tables."""
    path = tmp_path_factory.mktemp("database") / "kernelbot.sqlite3"
    with django_db_blocker.unblock(), database_in(path):
        call_command("migrate", verbosity=0)
    return path


class database_in:
    """The default database is this SQLite file for a while."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __enter__(self):
        self.before = connections["default"]
        name = {"NAME": str(self.path)}
        connections["default"] = DatabaseWrapper(self.before.settings_dict | name, "default")

    def __exit__(self, *error):
        connections["default"].close()
        connections["default"] = self.before


@pytest.fixture
def shared_database(request, emptied_after, transactional_db, tmp_path):
    """Its address, for other processes: a file here, or the PostgreSQL of the services."""
    if connections["default"].vendor == "postgresql":
        at = connections["default"].settings_dict
        port = f":{at['PORT']}" if at["PORT"] else ""
        login = at["USER"] + (f":{at['PASSWORD']}" if at["PASSWORD"] else "")
        yield f"postgres://{login}@{at['HOST']}{port}/{at['NAME']}"
        return
    path = tmp_path / "kernelbot.sqlite3"
    shutil.copy(request.getfixturevalue("migrated_file"), path)
    with database_in(path):
        yield f"sqlite:///{path}"


@pytest.fixture
def dispatchers(shared_database, tmp_path, request):
    dispatchers = Dispatchers(tmp_path, shared_database)
    yield dispatchers
    dispatchers.end()
