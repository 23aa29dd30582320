"""Jobs ring on PostgreSQL: here nobody looks by itself for minutes, and answers come all the same."""

from __future__ import annotations

import time

import pytest

from tests.server.popcorn import PATH, Stream, form
from tests.server.service import Service, wait_for

pytestmark = [pytest.mark.services, pytest.mark.xdist_group("bell")]
NEVER_S = 300
LISTENERS = "FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'LISTEN%'"


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    made = Service(
        tmp_path_factory.mktemp("bell"),
        WATCH_EVERY_S=NEVER_S,
        POLL_EVERY_S=NEVER_S,
        LEASE_S=3 * NEVER_S,
    ).prepare()
    try:
        made.start_web()
        yield made
    finally:
        made.stop_all()


def test_a_job_is_claimed_and_its_end_is_told_when_it_rings(service):
    began = time.monotonic()
    with service.client() as client, client.stream("POST", PATH, **form()) as response:
        stream = Stream(response)
        stream.next()
        hang_up(service)  # the web process hears again, and looks at what it may have missed
        service.start_dispatcher()
        assert stream.last()[0] == "result"

    hang_up(service)  # the dispatcher
    with service.client() as client, client.stream("POST", PATH, **form()) as response:
        assert Stream(response).last()[0] == "result"
    assert time.monotonic() - began < NEVER_S / 2
    for part in ("web", "dispatcher"):
        assert "the bell is not heard" in service.log(part)


def hang_up(service):
    """End the one connection that listens, and wait for the next one."""
    wait_for(lambda: len(listeners(service)) == 1)
    [before] = listeners(service)
    service.rows(f"SELECT pg_terminate_backend(pid) {LISTENERS}")
    wait_for(lambda: listeners(service) not in ([], [before]))


def listeners(service):
    return [row["pid"] for row in service.rows(f"SELECT pid {LISTENERS}")]
