"""The whole service as it runs in production, with stand-ins only for what lies outside it.

Web server and dispatcher as processes; the fake Modal, which runs each call in the real container
runtime; an S3 server; an `ncu` that obeys its flags. Only the dispatcher has Modal's token.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.fake_modal.server import TOKEN, FakeModal
from tests.modal.conftest import DEPLOYMENT
from tests.modal.postgres import Postgres
from tests.modal.test_deploy import deploy
from tests.object_store import AWS, BUCKET, ObjectStore
from tests.server.service import Service
from tests.synthetic_reports import DEMO_LAUNCHES, details_csv, details_text, write_report

ROOT = Path(__file__).resolve().parents[2]


def make_tools(folder: Path) -> Path:
    """The PATH of the containers: an ncu, and the Python of the tests."""
    folder.mkdir()
    source = (ROOT / "tests/gpu/fake_ncu.py").read_text()
    (folder / "ncu").write_text(f"#!{sys.executable}\n{source}")
    (folder / "ncu").chmod(0o755)
    (folder / "python3").symlink_to(sys.executable)
    make_report(folder)
    plan = {
        "report": "made.ncu-rep",
        "held_by": "hold",
        "log": "==PROF== Connected to process 1 (/usr/bin/python3)\n",
        "text": details_text(DEMO_LAUNCHES),
        "csv": details_csv(DEMO_LAUNCHES),
    }
    (folder / "plan.json").write_text(json.dumps(plan))
    return folder


def make_report(tools: Path, *, pad_bytes: int = 0) -> None:
    """What a capture gives from now on."""
    write_report(tools / "made.ncu-rep", DEMO_LAUNCHES, pad_bytes=pad_bytes)


def hold_captures(tools: Path) -> None:
    """Those that run and those to come."""
    (tools / "hold").touch()


def let_captures_go(tools: Path) -> None:
    (tools / "hold").unlink(missing_ok=True)


def slow_ncu(tools: Path, seconds: float) -> None:
    """From now on a capture takes so long."""
    plan = json.loads((tools / "plan.json").read_text())
    (tools / "plan.json").write_text(json.dumps(plan | {"sleep": seconds}))


class Dispatcher:
    """That of a stack, as a part that can be killed and frozen like the others."""

    def __init__(self, stack: Stack) -> None:
        self.stack = stack

    def start(self) -> None:
        self.stack.start_dispatcher()

    def kill(self) -> None:
        self.stack.stop("dispatcher", signal.SIGKILL)

    def freeze(self) -> None:
        os.kill(self.stack.pid("dispatcher"), signal.SIGSTOP)

    def thaw(self) -> None:
        os.kill(self.stack.pid("dispatcher"), signal.SIGCONT)


class Stack(Service):
    """Everything; `close` ends all of it. Leaderboard rowsum_cpu on the L4, alice's CLI id.

    The database is a file unless a `postgres` is given.
    """

    def __init__(
        self,
        folder: Path,
        postgres: Postgres | None = None,
        *,
        s3: ObjectStore | None = None,
        max_in_flight: int = 4,
        **settings: object,
    ) -> None:
        folder.mkdir()
        self.postgres = postgres
        if postgres is not None:
            settings["DATABASE_URL"] = postgres.url
        self.tools = make_tools(folder / "tools")
        path = f"{self.tools}:{os.environ['PATH']}"
        self.modal = FakeModal(folder / "modal", container_path=path)
        self.s3 = s3 or ObjectStore()
        l4 = {"runner": "modal", "sm": "89", "ncu": True, "max_in_flight": max_in_flight}
        defaults: dict[str, object] = AWS | {
            "GPU_TYPES": json.dumps({"L4": l4}),
            "MODAL_DEPLOYMENT": DEPLOYMENT,
            "REPORTS_STORAGE_URL": f"s3://{BUCKET}",
            "REPORTS_S3_ENDPOINT": self.s3.url,
            "POLL_EVERY_S": "0.1",
            "START_LIMIT_S": "12",  # a fresh dispatcher's first start loads Modal's client
            "START_MARGIN_S": "1",
            "RETRY_DELAY_S": "0.2",
        }
        super().__init__(folder, **defaults | settings)

    @property
    def _debug(self) -> dict[str, str]:
        """The dispatcher's environment; the web server's has neither token nor address."""
        return self.env | TOKEN | self.modal.environment()

    def prepare(self, template: Service | None = None) -> Stack:
        done = deploy(self.modal)
        assert done.returncode == 0, done.stderr
        problems = self.folder / "problems"
        shutil.copytree(ROOT / "examples/problems", problems)
        boards = (problems / "examples.yaml").read_text().replace("gpus: [CPU]", "gpus: [L4]")
        (problems / "examples.yaml").write_text(boards)
        self.manage("migrate", "-v0")
        self.manage("sync_problems", str(problems))
        made = self.manage("create_user", "alice")
        self.cli_id = made.partition("cli_id: ")[2].strip()
        return self

    def part(self, name: str) -> Any:
        """One of dispatcher, modal, s3 and postgres, to `kill`, `start`, `freeze` or `thaw`."""
        return Dispatcher(self) if name == "dispatcher" else getattr(self, name)

    def rows(self, sql: str, *values: object) -> list[dict[str, Any]]:
        if self.postgres is None:
            return super().rows(sql, *values)
        return self.postgres.rows(sql.replace("?", "%s"), *values)

    def manage(self, *arguments: str) -> str:
        done = subprocess.run(
            [sys.executable, "manage.py", *arguments],
            cwd=ROOT,
            env=self.env,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def start(self) -> Stack:
        self.start_web()
        self.start_dispatcher()
        return self

    @contextlib.contextmanager
    def another_dispatcher_while_the_first_is_frozen(self) -> Iterator[None]:
        """The first one goes on afterwards, and the other has ended."""
        first = self._processes.pop("dispatcher")
        first.send_signal(signal.SIGSTOP)
        try:
            self.start_dispatcher()
            yield
        finally:
            first.send_signal(signal.SIGCONT)
            time.sleep(1)
            self.stop("dispatcher")
            self._processes["dispatcher"] = first

    def close(self) -> None:
        for part in (self.s3, self.modal, self.postgres):
            if part is not None:
                part.thaw()
        self.stop_all()
        self.modal.close()
        self.s3.close()
        if self.postgres is not None:
            self.postgres.close()
