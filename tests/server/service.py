"""A real service: web server and dispatcher as processes, with a database and files of their own."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx

from kernelbot_site.supervisor import dispatcher_command, web_command
from runners.backends.fake import FakeRunner
from runners.backends.fake_plan import Plan
from tests.environment import GPU_TYPES, MEASURED
from tests.server.database import Database, OnPostgres, make_database
from tests.synthetic_reports import DEMO_LAUNCHES, write_demo_archive, write_report

ROOT = Path(__file__).resolve().parents[2]
PATIENCE_S = 60  # generous: a slow machine must not fail a test


class Service:
    """`folder` holds everything that it writes. Settings may be given as keyword arguments."""

    def __init__(self, folder: Path, **settings: object) -> None:
        self.folder = folder
        self.port = free_port()
        self.base_url = f"http://127.0.0.1:{self.port}"
        gpu_types: dict[str, Any] = dict(GPU_TYPES)
        gpu_types["B200"] = gpu_types["B200"] | {"max_in_flight": 64}
        given = settings.get("DATABASE_URL")
        self.database: Database = OnPostgres(str(given)) if given else make_database(folder)
        self.env = MEASURED | {
            "PATH": os.environ["PATH"],
            "DJANGO_SETTINGS_MODULE": "kernelbot_site.settings",
            "SECRET_KEY": "only for tests, and long enough for the checks of Django",
            "DATA_DIR": str(folder),
            "DATABASE_URL": self.database.url,
            "GPU_TYPES": json.dumps(gpu_types),
            "FAKE_RUNNER_DIR": str(folder / "fake-runs"),
            "PUBLIC_URL": self.base_url,
            "PROFILE_RATE": "100000/m",
            "IN_FLIGHT_PER_USER": "1000",
            "WATCH_EVERY_S": "0.05",
            "POLL_EVERY_S": "0.1",
            "STREAM_STATUS_EVERY_S": "1",
            "LEASE_S": "3",
        }
        self.env |= {name: str(value) for name, value in settings.items()}
        self.runner = FakeRunner(folder / "fake-runs")
        self._processes: dict[str, subprocess.Popen[bytes]] = {}

    def prepare(self, template: Service | None = None) -> Service:
        """Tables and the fixed cast: alice-cli-id, bob-cli-id, leaderboard rowsum …

        `template` is a prepared service that nobody started: copying its database is faster.
        """
        if template is not None:
            self.database.copy(template.database)
        else:
            for command in (["manage.py", "migrate", "-v0"], ["-m", "tests.server.seed"]):
                subprocess.run([sys.executable, *command], cwd=ROOT, env=self._debug, check=True)
        self.archive = write_demo_archive(self.folder / "capture.zip")
        self.plan()
        return self

    def make_archive(self, pad_bytes: int) -> Path:
        """A capture that can be read, with so many incompressible bytes in it."""
        path = self.folder / f"padded-{pad_bytes}.zip"
        report = write_report(path.with_suffix(".ncu-rep"), DEMO_LAUNCHES, pad_bytes=pad_bytes)
        with zipfile.ZipFile(path, "w") as archive:
            archive.write(report, "profile.ncu-rep")
            archive.writestr("ncu-details.txt", "synthetic details\n")
            archive.writestr("ncu-details.csv", "synthetic,details\n")
        report.unlink()
        return path

    def plan(self, job_id: object = None, **fields: Any) -> None:
        """What the fake runner does: with every job, or with one. Its archive can be read."""
        plan = Plan(**{"archive": str(self.archive)} | fields)
        self.runner.plan(plan, job_id=job_id)

    def start_web(self) -> None:
        self._start("web", web_command("127.0.0.1", self.port), self.env)
        wait_for(lambda: self._process("web").poll() is not None or self._answers())
        assert self._process("web").poll() is None, self.log()

    def start_dispatcher(self) -> None:
        self._start("dispatcher", dispatcher_command(), self._debug)

    def stop(self, name: str, signum: int = signal.SIGTERM) -> None:
        process = self._processes.pop(name)
        process.send_signal(signum)
        process.wait(PATIENCE_S)

    def stop_all(self) -> None:
        for name in list(self._processes):
            self.stop(name, signal.SIGKILL if name == "dispatcher" else signal.SIGTERM)
        self.database.drop()

    def pid(self, name: str) -> int:
        return self._process(name).pid

    def log(self, name: str = "web") -> str:
        return (self.folder / f"{name}.log").read_text()

    def rows(self, sql: str, *values: object) -> list[dict[str, Any]]:
        """Rows of the service's database as dictionaries, read without Django."""
        return self.database.rows(sql, *values)

    def execute(self, sql: str, *values: object) -> None:
        self.database.execute(sql, *values)

    def client(self, cli_id: str | None = "alice-cli-id", **options: Any) -> httpx.Client:
        headers = {"X-Popcorn-Cli-Id": cli_id} if cli_id is not None else {}
        defaults: dict[str, Any] = {"headers": headers, "timeout": PATIENCE_S, "trust_env": False}
        return httpx.Client(base_url=self.base_url, **defaults | options)

    def wait_until_final(self, request_id: str) -> dict[str, Any]:
        """The facts of a request once its job has ended."""
        with self.client() as client:
            path = f"/api/profile-requests/{request_id}/"

            def ended() -> dict[str, Any] | None:
                facts: dict[str, Any] = client.get(path).json()
                done = facts["status"] in ("succeeded", "failed", "timed_out", "cancelled")
                return facts if done else None

            return wait_for(ended)

    @property
    def _debug(self) -> dict[str, str]:
        """Commands check the settings, and only DEBUG may have the fake runner."""
        return self.env | {"DEBUG": "1"}

    def _start(self, name: str, command: list[str], env: dict[str, str]) -> None:
        with (self.folder / f"{name}.log").open("ab") as log:
            self._processes[name] = subprocess.Popen(
                command, cwd=ROOT, env=env, stdout=log, stderr=log, start_new_session=True
            )

    def _process(self, name: str) -> subprocess.Popen[bytes]:
        return self._processes[name]

    def _answers(self) -> bool:
        try:
            return httpx.get(f"{self.base_url}/health", timeout=2, trust_env=False).is_success
        except httpx.HTTPError:
            return False


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def wait_for[T](ask: Callable[[], T | None], patience_s: float = PATIENCE_S) -> T:
    """The first true answer."""
    deadline = time.monotonic() + patience_s
    while time.monotonic() < deadline:
        if answer := ask():
            return answer
        time.sleep(0.05)
    raise AssertionError(f"nothing came of {ask} within {patience_s} s")
