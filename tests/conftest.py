"""The fixed cast and small factories. alice owns, bob is a stranger, olga operates."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from leaderboards.models import ClientId, Leaderboard, PopcornUser, TaskRevision, digest_client_id
from leaderboards.task_definition import SUBMISSION_MARK, TaskDefinition
from tests.environment import DATA_DIR

APPEND_ONLY_TABLES = (
    "leaderboards_auditevent",
    "leaderboards_taskrevision",
    "runners_jobevent",
    "profiling_review",
)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """With FAIL_ON_SKIP, a test that was skipped is told as what it is: a test that did not run."""
    if os.environ.get("FAIL_ON_SKIP") and (skipped := terminalreporter.stats.get("skipped")):
        terminalreporter.write_line(f"FAIL_ON_SKIP: {len(skipped)} tests were skipped", red=True)


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if os.environ.get("FAIL_ON_SKIP") and reporter is not None and reporter.stats.get("skipped"):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_unconfigure() -> None:
    """Workers of xdist end without `atexit`."""
    shutil.rmtree(DATA_DIR, ignore_errors=True)


@pytest.fixture
def emptied_after(django_db_setup: None, django_db_blocker: Any) -> Iterator[None]:
    """For `transactional_db`, which empties the database with what the record's triggers refuse."""

    def switch(word: str) -> None:
        with django_db_blocker.unblock(), connection.cursor() as cursor:
            for table in APPEND_ONLY_TABLES:
                cursor.execute(f"ALTER TABLE {table} {word} TRIGGER {table}_no_truncate")

    if connection.vendor != "postgresql":
        yield
        return
    switch("DISABLE")
    yield
    switch("ENABLE")


def make_person(name: str, **fields: Any) -> PopcornUser:
    """A submitter whose CLI id is `<name>-cli-id`."""
    user = PopcornUser.objects.create_user(username=name, user_id=f"id-{name}", **fields)
    ClientId.objects.create(
        kind=ClientId.Kind.CLI,
        digest=digest_client_id(f"{name}-cli-id"),
        user=user,
        activated_at=timezone.now(),
    )
    return user


@pytest.fixture
def alice(db: None) -> PopcornUser:
    return make_person("alice")


@pytest.fixture
def bob(db: None) -> PopcornUser:
    return make_person("bob")


@pytest.fixture
def olga(db: None) -> PopcornUser:
    return make_person("olga", is_staff=True, is_superuser=True)


def make_definition(**fields: Any) -> TaskDefinition:
    """A small Python task with three benchmarks."""
    defaults: dict[str, Any] = {
        "lang": "py",
        "files": {"submission.py": SUBMISSION_MARK, "eval.py": "print('evaluator')\n"},
        "main": "eval.py",
        "tests": ({"size": 64, "seed": 1},),
        "benchmarks": (
            {"size": 256, "seed": 2},
            {"size": 512, "seed": 3},
            {"size": 1024, "seed": 4},
        ),
    }
    return TaskDefinition(**defaults | fields)


@pytest.fixture
def make_leaderboard(db: None) -> Callable[..., Leaderboard]:
    def make(
        name: str = "rowsum", *, task: dict[str, Any] | None = None, **fields: Any
    ) -> Leaderboard:
        defaults: dict[str, Any] = {
            "gpu_types": ["B200", "H100", "CPU"],
            "deadline": timezone.now() + timedelta(days=30),
        }
        board = Leaderboard.objects.create(name=name, **defaults | fields)
        definition = make_definition(**task or {})
        board.current_revision = TaskRevision.objects.create(
            leaderboard=board, definition_json=definition.to_json(), sha256=definition.sha256
        )
        board.save()
        return board

    return make


@pytest.fixture
def rowsum(make_leaderboard: Callable[..., Leaderboard]) -> Leaderboard:
    """A leaderboard on B200, H100 and CPU with three benchmarks."""
    return make_leaderboard()
