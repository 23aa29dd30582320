"""deploy/nginx.conf in a real nginx, in front of the web processes of production."""

from __future__ import annotations

import json
import socket
import ssl
import time

import httpx
import pytest

from tests.server.popcorn import PATH, Stream, form
from tests.server.service import wait_for

pytestmark = [pytest.mark.services, pytest.mark.xdist_group("services")]


def test_events_come_through_at_once_and_uncompressed(whole):
    """FR-27: though this nginx compresses whatever it may, and buffers unless it is told not to."""
    _, nginx = whole
    with nginx.client() as client:
        client.get("/health")
        began = time.monotonic()
        compressed = {"Accept-Encoding": "gzip, br"}
        with client.stream("POST", PATH, headers=compressed, **form()) as response:
            assert "content-encoding" not in response.headers
            stream = Stream(response)
            name, first = stream.next()
            took = time.monotonic() - began
            later = [stream.next() for _ in range(3)]

    assert (name, first["job_status"]) == ("status", "queued")
    assert took < 5  # that it came while the stream is open is what nginx's defaults break
    assert [each[1]["status"] for each in later] == ["processing"] * 3


def test_addresses_in_the_trail_are_the_clients_whatever_they_claim(whole):
    """FR-33: the header is replaced, so that a forged one names nobody."""
    service, nginx = whole
    forged = {
        "X-Forwarded-For": "203.0.113.7, 127.0.0.1",
        "Forwarded": "for=203.0.113.7",
        "X-Real-IP": "203.0.113.7",
        "User-Agent": "forger",
        "Prefer": "respond-async",
    }
    with nginx.client() as client:
        answer = client.post(PATH, headers=forged, **form())

    assert answer.status_code == 202
    assert answer.headers["Location"].startswith((nginx.base_url, "/"))
    trail = service.rows(
        "SELECT host(address) AS address FROM profiling_profilerequest "
        "WHERE client_version = 'forger'"
    )
    assert trail == [{"address": "127.0.0.1"}]


def test_a_forged_address_per_request_evades_no_limit(tmp_path, whole):
    """FR-33, FR-34: registrations are counted by address, before anybody is known."""
    _, nginx = whole
    with nginx.client() as client:
        answers = [
            client.get(
                "/auth/init",
                params={"provider": "github"},
                headers={"X-Forwarded-For": f"203.0.113.{n}"},
            ).status_code
            for n in range(25)
        ]

    assert answers[-1] == 429


@pytest.mark.parametrize("declared", [3_000_000, 20_000_000_000])
def test_an_upload_that_is_too_large_is_refused_before_it_is_sent(whole, declared):
    _, nginx = whole
    head = (
        f"POST {PATH} HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Popcorn-Cli-Id: alice-cli-id\r\n"
        f"Content-Type: multipart/form-data; boundary=x\r\nContent-Length: {declared}\r\n\r\n--x\r\n"
    )
    with (
        socket.create_connection(("127.0.0.1", nginx.port), timeout=30) as plain,
        nginx.verify.wrap_socket(plain, server_hostname="127.0.0.1") as connection,
    ):
        connection.sendall(head.encode())
        answer = _read_answer(connection)

    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 413"), head
    assert b"application/json" in head
    assert json.loads(body)["code"] == "too_large"


def _read_answer(connection: ssl.SSLSocket) -> bytes:
    answer = b""
    while b"}" not in answer and (more := connection.recv(65536)):
        answer += more
    return answer


def test_an_upload_a_little_too_large_is_refused_and_recorded(whole):
    service, nginx = whole
    with nginx.client() as client:
        answer = client.post(PATH, **form(b"#" * 1_000_001))

    assert answer.status_code == 413
    assert isinstance(answer.json()["detail"], str)
    assert service.rows(
        "SELECT 1 FROM profiling_profilerequest WHERE refusal_status = 413 AND address = '127.0.0.1'"
    )


def test_a_head_that_trickles_in_is_given_up(whole):
    """As slowloris does: a letter now and then, so that the connection never seems idle."""
    _, nginx = whole
    with (
        socket.create_connection(("127.0.0.1", nginx.port)) as plain,
        nginx.verify.wrap_socket(plain, server_hostname="127.0.0.1") as connection,
    ):
        connection.settimeout(0.5)
        connection.sendall(b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: ")
        began, closed = time.monotonic(), False
        while not closed and time.monotonic() - began < 60:
            try:
                connection.sendall(b"a")
                closed = connection.recv(1) == b""
            except TimeoutError:
                continue
            except OSError:
                closed = True
    assert closed


def test_a_kept_connection_outlives_a_pause(whole):
    _, nginx = whole
    with nginx.client(limits=httpx.Limits(keepalive_expiry=60)) as client:
        client.get("/health")
        before = client._transport._pool.connections[0]
        time.sleep(6)
        assert client.get("/health").is_success
        assert client._transport._pool.connections == [before]


def test_static_files_come_from_nginx_and_may_be_compressed(whole):
    _, nginx = whole
    with nginx.client() as client:
        style = client.get("/static/base.css", headers={"Accept-Encoding": "gzip"})
        listing = client.get("/static/")
        outside = client.get("/static/../nginx/key.pem")

    assert style.headers["Content-Encoding"] == "gzip"
    assert style.headers["X-Content-Type-Options"] == "nosniff"
    assert listing.status_code == 403
    assert outside.status_code == 404


def test_plain_requests_behind_nginx_are_https_to_the_service(whole):
    """No loop of redirects, and cookies that only https carries."""
    _, nginx = whole
    with nginx.client() as client:
        login = client.get("/operators/login/")

    assert login.status_code == 200
    assert "Secure" in login.headers["Set-Cookie"]
    assert "max-age" in login.headers["Strict-Transport-Security"]


def test_while_the_service_restarts_clients_read_json(whole):
    service, nginx = whole
    service.stop("web")
    with nginx.client() as client:
        down = client.get("/api/profile-requests/")
        service.start_web()
        up = wait_for(lambda: (now := client.get("/api/profile-requests/")).is_success and now)

    assert down.status_code == 503
    assert down.headers["Retry-After"] == "5"
    assert isinstance(down.json()["detail"], str)
    assert up.status_code == 200


def test_the_access_log_has_no_query_no_signed_address_and_the_request_id(whole):
    _, nginx = whole
    link = f"/profile/{'a' * 32}.1900000000.{'MARK-SECRET'.ljust(43, '_')}"
    with nginx.client(cli_id="MARK-SECRET-id") as client:
        answer = client.get("/nothing/to/see?code=MARK-SECRET-code")
        client.get(link)
    text = wait_for(lambda: _log_with(nginx, "(signed)"))

    lines = [json.loads(line) for line in text.splitlines()]
    assert "MARK-SECRET" not in text
    wanted = answer.headers["X-Request-Id"]
    assert [line["path"] for line in lines if line["request_id"] == wanted] == ["/nothing/to/see"]


def _log_with(nginx, mark):
    text = (nginx.folder / "access.log").read_text()
    return text if mark in text else None
