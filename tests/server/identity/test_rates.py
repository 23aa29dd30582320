"""Limits by address, before anybody is known: FR-33 over HTTP."""

from __future__ import annotations

import socket
import subprocess

import httpx

from kernelbot_site.supervisor import web_command
from tests.server.service import ROOT, wait_for

PATH = "/auth/init?provider=github"
# Twice the limit and more, since a count begins anew with the minute.
TRIES = 9
LIMIT = {"AUTH_RATE": "4/m"}


def statuses(service, *addresses):
    """Of TRIES requests, each with the next of these forwarding headers."""
    with service.client(cli_id=None) as client:
        return [
            client.get(PATH, headers={"X-Forwarded-For": address}).status_code
            for address in addresses
        ]


def test_fr_33_a_forwarding_header_evades_no_limit(make_service):
    service = make_service(**LIMIT)
    service.start_web()

    answers = statuses(service, *(f"203.0.113.{n}" for n in range(TRIES)))

    assert answers[:4] == [200] * 4
    assert 429 in answers
    refused = service.rows("SELECT * FROM leaderboards_floodrefusal")
    assert {row["identity"] for row in refused} == {"address:127.0.0.1"}


def test_fr_33_behind_a_trusted_proxy_each_client_has_its_own_count(make_service):
    service = make_service(**LIMIT, TRUSTED_PROXIES="127.0.0.0/8")
    service.start_web()

    forged = statuses(service, *(f"198.51.100.{n}, 203.0.113.7" for n in range(TRIES)))
    other = statuses(service, *["203.0.113.8"] * 4)
    neighbours = statuses(service, *(f"2001:db8::{n}" for n in range(1, TRIES + 1)))

    assert 429 in forged, "what the client wrote before the proxy's entry changes nothing"
    assert other == [200] * 4
    assert 429 in neighbours, "a whole /64 is one client"
    asked = service.rows("SELECT DISTINCT issued_to_address AS it FROM leaderboards_clientid")
    assert {row["it"] for row in asked} >= {"203.0.113.7", "203.0.113.8", "2001:db8::1"}


def test_fr_33_without_an_address_there_is_an_answer(make_service):
    service = make_service(**LIMIT)
    path = str(service.folder / "web.sock")
    command = [*web_command("127.0.0.1", service.port), "--uds", path]
    web = subprocess.Popen(command, cwd=ROOT, env=service.env, stderr=subprocess.DEVNULL)
    try:
        wait_for(lambda: listens(path) or web.poll() is not None)
        transport = httpx.HTTPTransport(uds=path)
        with httpx.Client(transport=transport, base_url="http://localhost", timeout=60) as client:
            found = [client.get(PATH).status_code for _ in range(TRIES)]
    finally:
        web.terminate()
        web.wait(60)

    assert set(found) == {200, 429}


def listens(path):
    with socket.socket(socket.AF_UNIX) as probe:
        return probe.connect_ex(path) == 0
