"""A PostgreSQL of the test's own, to be killed and frozen."""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

import psycopg
from psycopg.rows import dict_row

from tests.server.service import free_port


def find_programs() -> Path | None:
    """The folder of initdb and postgres, where Debian or somebody else put them."""
    for folder in sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True):
        return folder
    found = shutil.which("initdb")
    return Path(found).parent if found else None


class Postgres:
    def __init__(self, *options: str) -> None:
        """`options` are those of the server, such as "-c", "max_connections=20"."""
        programs = find_programs()
        assert programs is not None, "PostgreSQL is not installed"
        self.folder = Path(tempfile.mkdtemp(prefix="kernelbot-postgres-"))
        self.port = free_port()
        self.url = f"postgres://kernelbot@127.0.0.1:{self.port}/postgres"
        # It refuses to run as root, and every machine has this user.
        self._as_user: list[str] = []
        if os.geteuid() == 0:
            nobody = pwd.getpwnam("nobody")
            os.chown(self.folder, nobody.pw_uid, nobody.pw_gid)
            self._as_user = ["setpriv", f"--reuid={nobody.pw_uid}", f"--regid={nobody.pw_gid}"]
            self._as_user.append("--clear-groups")
        self._postgres = [str(programs / "postgres"), "-D", str(self.folder / "data"), *options]
        initdb = [str(programs / "initdb"), "-D", str(self.folder / "data"), "-A", "trust"]
        self._run([*initdb, "-U", "kernelbot"])
        self.start()

    def start(self) -> None:
        """Start, or start again after `kill` with all that was committed."""
        options = ["-p", str(self.port), "-h", "127.0.0.1", "-k", str(self.folder)]
        self.process = subprocess.Popen(
            [*self._as_user, *self._postgres, *options],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        deadline = time.monotonic() + 60
        while True:
            try:
                self.rows("select 1")
            except psycopg.OperationalError:
                assert time.monotonic() < deadline, "PostgreSQL did not start"
                time.sleep(0.1)
            else:
                return

    def rows(self, sql: str, *values: Any) -> list[dict[str, Any]]:
        with psycopg.connect(self.url, row_factory=dict_row) as connection:
            return connection.execute(sql, values).fetchall()

    def run_outside(self, sql: str) -> None:
        """A command that no transaction may hold, such as CREATE DATABASE."""
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute(sql)

    def kill(self) -> None:
        """As when the machine loses its power."""
        self._signal(signal.SIGKILL)
        self.process.wait()
        (self.folder / "data/postmaster.pid").unlink(missing_ok=True)

    def freeze(self) -> None:
        self._signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self._signal(signal.SIGCONT)

    def close(self) -> None:
        self.thaw()
        self.kill()
        shutil.rmtree(self.folder)

    def _signal(self, number: int) -> None:
        """To the server and to each process that it started, which have sessions of their own."""
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text()
        for pid in [self.process.pid, *map(int, children.split())]:
            with contextlib.suppress(ProcessLookupError):  # it ended meanwhile
                os.kill(pid, number)

    def _run(self, argv: list[str]) -> None:
        subprocess.run([*self._as_user, *argv], check=True, stdout=subprocess.DEVNULL)
