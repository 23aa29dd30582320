"""The database of a service under test, asked without Django: a file, or one on PostgreSQL.

Values are what SQLite gives for what Django writes, so that a test reads the same of both.
"""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import uuid
from contextlib import closing, suppress
from datetime import datetime
from ipaddress import IPv4Address, IPv6Address
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg
from psycopg.rows import dict_row

FILE = "kernelbot.sqlite3"


def make_database(folder: Path) -> Database:
    """An empty one of the service's own, of the kind that DATABASE_URL names for this run."""
    server = urlsplit(os.environ.get("DATABASE_URL", ""))
    if not server.scheme.startswith("postgres"):
        return InFile(folder)
    own = server._replace(path=f"/service_{uuid.uuid4().hex}")
    return OnPostgres(own.geturl(), is_own=True)


class InFile:
    def __init__(self, folder: Path) -> None:
        self.path = folder / FILE
        self.away = folder / "away"
        self.url = f"sqlite:///{self.path}"
        self.name = FILE

    def rows(self, sql: str, *values: object) -> list[dict[str, Any]]:
        with closing(sqlite3.connect(self.path, timeout=20)) as database:
            database.row_factory = sqlite3.Row
            return [dict(row) for row in database.execute(sql, values)]

    def execute(self, sql: str, *values: object) -> None:
        with closing(sqlite3.connect(self.path, timeout=20)) as database:
            database.execute(sql, values)
            database.commit()

    def copy(self, other: InFile) -> None:
        """All that nobody writes just now."""
        other.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        shutil.copy(other.path, self.path)

    def take_away(self) -> None:
        """Nobody can open it; what is open stays so."""
        self.path.rename(self.away)
        self.path.mkdir()

    def bring_back(self) -> None:
        self.path.rmdir()
        self.away.rename(self.path)

    def contents(self) -> str:
        files = self.path.parent.glob(f"{FILE}*")
        return "".join(part.read_bytes().decode("latin-1") for part in files)

    def connections(self, pid: int) -> int:
        """How many the process has, at most."""
        return sum(FILE in _target(each.path) for each in os.scandir(f"/proc/{pid}/fd"))

    def drop(self) -> None:
        """Its folder goes with the test."""


class OnPostgres:
    def __init__(self, url: str, *, is_own: bool = False) -> None:
        """An own one is made here, and dropped by `drop`."""
        self.url = url
        self.name = urlsplit(url).path.removeprefix("/")
        self.is_own = is_own
        if is_own:
            self._manage(f'CREATE DATABASE "{self.name}"')

    def rows(self, sql: str, *values: object) -> list[dict[str, Any]]:
        with psycopg.connect(self.url, row_factory=dict_row) as connection:
            found = connection.execute(_numbered(sql), values or None).fetchall()
        return [{name: _plain(value) for name, value in row.items()} for row in found]

    def execute(self, sql: str, *values: object) -> None:
        with psycopg.connect(self.url) as connection:
            connection.execute(_numbered(sql), values or None)

    def copy(self, other: OnPostgres) -> None:
        self.drop()
        self._manage(f'CREATE DATABASE "{self.name}" TEMPLATE "{other.name}"')

    def take_away(self) -> None:
        """Nobody can open it, and who had is put out."""
        self._manage(f'ALTER DATABASE "{self.name}" ALLOW_CONNECTIONS false')
        self._manage(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", self.name
        )

    def bring_back(self) -> None:
        self._manage(f'ALTER DATABASE "{self.name}" ALLOW_CONNECTIONS true')

    def contents(self) -> str:
        tables = self.rows("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
        with psycopg.connect(self.url) as connection:
            return "".join(
                str(connection.execute(f'SELECT * FROM "{table["tablename"]}"').fetchall())
                for table in tables
            )

    def connections(self, pid: int) -> int:
        """How many there are, of whomever."""
        counted = "SELECT count(*) AS n FROM pg_stat_activity WHERE datname = current_database()"
        return int(self.rows(counted)[0]["n"])

    def drop(self) -> None:
        if self.is_own:
            self._manage(f'DROP DATABASE IF EXISTS "{self.name}" WITH (FORCE)')

    def _manage(self, sql: str, *values: object) -> None:
        beside = urlsplit(self.url)._replace(path="/postgres").geturl()
        with psycopg.connect(beside, autocommit=True) as connection:
            connection.execute(sql, values or None)


type Database = InFile | OnPostgres


def _target(path: str) -> str:
    with suppress(OSError):  # closed meanwhile
        return os.readlink(path)
    return ""


def _numbered(sql: str) -> str:
    return sql.replace("?", "%s")


def _plain(value: Any) -> Any:
    match value:
        case uuid.UUID():
            return value.hex
        case bool():
            return int(value)
        case datetime():
            return value.replace(tzinfo=None).isoformat(" ")
        case IPv4Address() | IPv6Address():
            return str(value)
        case dict() | list():
            return json.dumps(value)
    return value
