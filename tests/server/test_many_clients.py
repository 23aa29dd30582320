"""Many clients at once, and clients that go away: nothing is lost, nothing is kept."""

from __future__ import annotations

import contextlib
import os
from concurrent.futures import ThreadPoolExecutor

import httpx

from tests.server.popcorn import PATH, Stream, form
from tests.server.service import wait_for

NOW = {"Prefer": "respond-async"}


def open_files(service):
    return len(os.listdir(f"/proc/{service.pid('web')}/fd"))


def threads(service):
    return len(os.listdir(f"/proc/{service.pid('web')}/task"))


def last_event(service, client):
    with client.stream("POST", PATH, **form(benchmark_index="0")) as response:
        return Stream(response).last()


def test_sixty_parallel_profiles_all_end_with_a_result(service):
    """FR-29, FR-31: beside readers of the list, with no lock error in any answer or log."""
    service.plan(run_s=0.2)
    log = service.log(), service.log("dispatcher")
    limits = httpx.Limits(max_connections=200)
    with service.client(limits=limits) as client, ThreadPoolExecutor(80) as pool:
        client.get("/ready")
        profiles = [pool.submit(last_event, service, client) for _ in range(60)]
        reads = [pool.submit(client.get, "/api/profile-requests/") for _ in range(20)]
        health = [pool.submit(client.get, "/health") for _ in range(20)]

        assert {each.result()[0] for each in profiles} == {"result"}
        assert {each.result().status_code for each in reads + health} == {200}

    for name, before in zip(("web", "dispatcher"), log, strict=True):
        assert "locked" not in service.log(name)[len(before) :]
        assert "Traceback" not in service.log(name)[len(before) :]


def test_streams_hold_neither_a_thread_nor_a_connection(service):
    """FR-29: whatever the number of streams, only a few of each."""
    service.plan(run_s=600)
    with service.client(limits=httpx.Limits(max_connections=200)) as client:
        client.get("/api/profile-requests/")
        with contextlib.ExitStack() as stack:
            opened = [stack.enter_context(client.stream("POST", PATH, **form())) for _ in range(50)]
            for response in opened:
                assert Stream(response).next()[0] == "status"
            connections = service.database.connections(service.pid("web"))
            busy = threads(service)
            pages = ("/health", "/ready", "/api/profile-requests/", "/operators/login/")
            answers = [client.get(page).status_code for page in pages]
        running = [response.headers["X-Profile-Request"] for response in opened]
    for request_id in running:
        with service.client() as client:
            client.post(f"/api/profile-requests/{request_id}/cancel/")

    assert answers == [200] * len(answers)
    assert busy < 40
    assert connections < 40  # of a file on SQLite, each has up to three


def test_clients_that_leave_cost_nothing_and_lose_nothing(service):
    """FR-28: every job ends and is stored once; counts return; the log has no traceback."""
    service.plan(run_s=0.5)
    with service.client() as client:
        client.get("/api/profile-requests/")
    before, log = open_files(service), service.log()

    requests = []
    for _ in range(20):
        with service.client() as client, client.stream("POST", PATH, **form()) as response:
            requests.append(response.headers["X-Profile-Request"])
            Stream(response).next()

    facts = [service.wait_until_final(request_id) for request_id in requests]
    assert {each["status"] for each in facts} == {"succeeded"}
    wait_for(lambda: open_files(service) <= before + 3)
    assert "Traceback" not in service.log()[len(log) :]
    stored = service.rows(
        "SELECT count(*) AS n FROM runners_artifact GROUP BY job_id, attempt, name ORDER BY n DESC"
    )
    assert stored[0]["n"] == 1
    with service.client() as client:
        archive = client.get(facts[0]["captures"][0]["archive"]["url"])
    assert archive.content == service.archive.read_bytes()


def test_a_client_that_leaves_in_the_middle_of_a_result_harms_nobody(service):
    service.plan(archive=str(service.make_archive(3_000_000)))
    with service.client() as client:
        sent = client.post(PATH, headers=NOW, **form(benchmark_index="0")).json()
    service.wait_until_final(sent["id"])
    log = service.log()

    for _ in range(10):
        with (
            service.client() as client,
            client.stream("GET", sent["urls"]["stream"]) as response,
        ):
            next(response.iter_raw())

    with service.client() as client, client.stream("GET", sent["urls"]["stream"]) as response:
        assert Stream(response).last()[0] == "result"
    assert "Traceback" not in service.log()[len(log) :]


def test_a_large_result_leaves_the_memory_flat(service):
    """FR-21: four at once, each of which would be more than that. benchmarks/ measures it well."""
    service.plan(archive=str(service.make_archive(20_000_000)))
    with service.client() as client:
        sent = client.post(PATH, headers=NOW, **form(benchmark_index="0")).json()
    facts = service.wait_until_final(sent["id"])
    before = memory(service)

    with service.client() as client, ThreadPoolExecutor(4) as pool:
        wanted = [sent["urls"]["stream"], facts["captures"][0]["archive"]["url"]] * 2
        answers = [pool.submit(size_of, client, address) for address in wanted]
        assert all(each.result() > 20_000_000 for each in answers)
        assert client.get("/ready").is_success

    assert memory(service, peak=True) - before < 32_000_000


def size_of(client, path):
    with client.stream("GET", path) as response:
        return sum(len(piece) for piece in response.iter_raw())


def memory(service, *, peak=False):
    """Resident bytes of the web process, now or at most since it began."""
    wanted = "VmHWM:" if peak else "VmRSS:"
    with open(f"/proc/{service.pid('web')}/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith(wanted)) * 1024
