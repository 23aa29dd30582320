"""Real processes that end runs without a row at once, under one lease in the database (FR-30)."""

from __future__ import annotations

import itertools
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext

import pytest
from asgiref.sync import async_to_sync
from django.db import connection
from django.utils import timezone

from runners.backends.fake_plan import Plan
from runners.dispatcher.turns import take_turn
from runners.gpu.contract import JobConfig, Mode
from runners.models import DispatcherTurn
from runners.states import JobStatus
from tests.runners.processes import (
    database_in,
    dispatchers,
    migrated_file,
    shared_database,
    wait_until,
)
from tests.runners.test_dispatcher_processes import add_job, kill, wait_for
from tests.server.database import FILE, InFile, OnPostgres

__all__ = ["dispatchers", "migrated_file", "shared_database"]
NAME = "strays of fake"
CANCEL_S = 0.2
LEASE_S = 2  # as in tests.runners.processes


@pytest.fixture
def add_strays(dispatchers):
    """Runs that no row names, old enough to be ended."""

    def add(count: int) -> set[str]:
        ids = set()
        for number in range(count):
            config = JobConfig(
                job_id=f"lost-{number}",
                attempt=1,
                mode=Mode.TEST,
                lang="py",
                main="eval.py",
                sources={"eval.py": ""},
            )
            external_id = async_to_sync(dispatchers.fake.start)("B200", config)
            begun = dispatchers.fake.root / "runs" / external_id / "started"
            begun.write_text(str(time.time() - 600))
            ids.add(external_id)
        return ids

    return add


@pytest.fixture
def sweepers(dispatchers):
    """Make so many processes, which begin at once at `open_gate`."""
    dispatchers.gate = dispatchers.folder / "gate"

    def make(count: int):
        made = [dispatchers.sweep(dispatchers.gate) for _ in range(count)]
        wait_until(lambda: text_of(dispatchers).count("ready") == len(dispatchers.processes))
        return made

    return make


def text_of(dispatchers) -> str:
    return dispatchers.log.read_text()


def holder() -> str:
    """The token of who has the turn just now; empty where nobody has."""
    turns = DispatcherTurn.objects.filter(name=NAME, until__gt=timezone.now())
    return turns.values_list("token", flat=True).first() or ""


def test_of_processes_that_sweep_at_once_one_does_and_each_stray_is_ended_once(
    dispatchers, add_strays, sweepers
):
    fake = dispatchers.fake
    fake.plan(Plan(run_s=3600, cancel_s=CANCEL_S))
    strays = add_strays(8)
    sweepers(2)

    dispatchers.gate.touch()
    wait_until(lambda: not fake.alive())

    ended = fake.calls("cancelled")
    assert sorted(call["external_id"] for call in ended) == sorted(strays)
    # Two at it side by side would end one run while the other is being ended.
    pauses = [b["at"] - a["at"] for a, b in itertools.pairwise(ended)]
    assert min(pauses) >= CANCEL_S * 0.95
    # Whoever was refused came back at once, and asked again.
    assert text_of(dispatchers).count("swept") > 2


def test_a_killed_process_keeps_the_others_away_for_its_lease_only(
    dispatchers, add_strays, sweepers
):
    fake = dispatchers.fake
    fake.plan(Plan(run_s=3600, cancel_s=600))
    strays = add_strays(3)
    [first] = sweepers(1)
    dispatchers.gate.touch()
    wait_until(holder)
    dead = holder()
    # A provider that takes longer than a lease to end a run: the turn is renewed meanwhile.
    time.sleep(LEASE_S * 1.5)
    assert holder() == dead
    kill(first)
    killed_at = time.time()
    fake.plan(Plan(run_s=3600))

    sweepers(2)
    wait_until(lambda: not fake.alive())

    ended = fake.calls("cancelled")
    assert sorted(call["external_id"] for call in ended) == sorted(strays)
    # It had renewed the lease a third of it ago at most.
    assert ended[0]["at"] - killed_at > LEASE_S / 2
    wait_until(lambda: holder() != dead)


def test_a_run_whose_start_is_just_being_saved_is_left_alone(dispatchers, sweepers):
    fake = dispatchers.fake
    fake.plan(Plan(answer_s=2, run_s=600))
    sweepers(2)
    dispatchers.gate.touch()
    job = add_job()
    dispatchers.start()
    wait_until(lambda: fake.calls("started"))
    swept = text_of(dispatchers).count("swept")

    wait_for(job, JobStatus.RUNNING)
    # While its id was on its way they looked often, and so they do when it could be a stray's.
    assert text_of(dispatchers).count("swept") > swept + 10
    time.sleep(5)

    [start] = fake.calls("started")
    assert (job.external_id, job.attempt) == (start["external_id"], 1)
    assert fake.alive() == [job.external_id]
    assert fake.calls("cancelled") == []


def test_a_turn_that_could_not_be_renewed_for_a_while_is_kept_when_the_database_is_back(
    dispatchers, add_strays, sweepers, shared_database, tmp_path
):
    fake = dispatchers.fake
    fake.plan(Plan(run_s=3600, cancel_s=6))
    add_strays(1)
    is_file = shared_database.startswith("sqlite")
    database = InFile(tmp_path) if is_file else OnPostgres(shared_database)
    [sweeper] = sweepers(1)
    dispatchers.gate.touch()
    wait_until(lambda: "belongs to no row" in text_of(dispatchers))
    mine = holder()

    database.take_away()
    try:
        wait_until(lambda: "the turn is not renewed" in text_of(dispatchers))
    finally:
        database.bring_back()
        connection.close()

    wait_until(lambda: holder() == mine)
    wait_until(lambda: not fake.alive())
    assert len(fake.calls("cancelled")) == 1
    wait_until(lambda: "swept" in text_of(dispatchers))
    sweeper.terminate()
    assert sweeper.wait(60) == 0


def test_of_threads_that_ask_for_a_turn_at_once_one_gets_it(shared_database, tmp_path):
    """Each with a connection of its own: the first row of a turn, and one that is over."""
    count = 8
    begin = threading.Barrier(count)
    is_file = shared_database.startswith("sqlite")

    def ask(number: int) -> bool:
        with database_in(tmp_path / FILE) if is_file else nullcontext():
            begin.wait()
            try:
                return take_turn("race", f"token-{number}-{time.monotonic_ns()}", 60)
            finally:
                connection.close()

    with ThreadPoolExecutor(count) as threads:
        for _ in range(5):
            assert sum(threads.map(ask, range(count))) == 1
            DispatcherTurn.objects.update(until=timezone.now())
