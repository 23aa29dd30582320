"""Two web processes: limits are counted together, and few connections carry many streams."""

from __future__ import annotations

import contextlib
import os
import signal

import httpx
import pytest

from tests.server.popcorn import PATH, Stream, form
from tests.services.parts import ManyProcesses, run_redis

pytestmark = [pytest.mark.services, pytest.mark.xdist_group("services")]
STREAMS = 150


def test_two_processes_count_one_flood_limit(tmp_path, postgres, cache_url, whole):
    """FR-33: whichever process answers, the tenth request is the tenth."""
    strict = ManyProcesses(tmp_path, postgres, cache_url, PROFILE_RATE="10/h")
    try:
        strict.start_web()
        first, second = strict.web_pids()
        answers = []
        for stopped in (first, second):
            # Only the other one can answer; connections that the stopped one took are lost.
            os.kill(stopped, signal.SIGSTOP)
            try:
                answers += [_ask(strict) for _ in range(8)]
            finally:
                os.kill(stopped, signal.SIGCONT)
    finally:
        strict.stop_all()

    assert sorted(answers) == [401] * 10 + [429] * 6


def _ask(service):
    """The status of one request of a stranger, on a connection of its own."""
    while True:
        with contextlib.suppress(httpx.TimeoutException), service.client("nobody", timeout=2) as it:
            return it.post(PATH, **form()).status_code


def test_without_its_cache_the_service_says_so_and_limits_are_not_lifted(tmp_path, postgres, whole):
    folder = tmp_path / "service"
    folder.mkdir()
    with run_redis(tmp_path) as url:
        service = ManyProcesses(folder, postgres, url)
    try:
        service.start_web()
        with service.client() as client:
            refused = client.post(PATH, **form())
            health, read = client.get("/health"), client.get("/api/profile-requests/")
    finally:
        service.stop_all()

    assert refused.status_code == 503
    assert int(refused.headers["Retry-After"]) > 0
    assert "redis" not in refused.text.lower()
    assert (health.status_code, read.status_code) == (200, 200)


def test_many_streams_need_few_connections(whole):
    """FR-29: 150 streams while PostgreSQL allows 20 connections in all; each gets its result."""
    service, nginx = whole
    limits = httpx.Limits(max_connections=STREAMS + 10)
    with nginx.client(limits=limits) as client, contextlib.ExitStack() as stack:
        streams = [
            Stream(stack.enter_context(client.stream("POST", PATH, **form(benchmark_index="0"))))
            for _ in range(STREAMS)
        ]
        assert {stream.next()[0] for stream in streams} == {"status"}
        used = service.rows("SELECT count(*) AS n FROM pg_stat_activity WHERE datname = 'postgres'")
        answers = [client.get(page).status_code for page in ("/ready", "/api/profile-requests/")]
        service.start_dispatcher()
        try:
            last = [stream.last()[0] for stream in streams]
        finally:
            service.stop("dispatcher")

    assert used[0]["n"] <= 2 * 4 + 1  # two pools of four, and this question
    assert answers == [200, 200]
    assert last == ["result"] * STREAMS
