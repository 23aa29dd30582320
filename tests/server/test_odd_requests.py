"""Request lines and headers that no decent client sends, over a raw socket to the ASGI server itself."""

from __future__ import annotations

import socket

import pytest

from tests.server.service import PATIENCE_S

ALICE = "X-Popcorn-Cli-Id: alice-cli-id"
OWN = "/user/submissions"
HOST = "Host: 127.0.0.1"


def ask(service, *lines, body=b"") -> int:
    """The status of a request of these lines; 0 when the connection was closed without one."""
    with socket.create_connection(("127.0.0.1", service.port), timeout=PATIENCE_S) as connection:
        head = "\r\n".join((*lines, "Connection: close")) + "\r\n\r\n"
        connection.sendall(head.encode("latin-1") + body)
        received = b""
        while piece := connection.recv(65536):
            received += piece
    if not received:
        return 0
    version, status, *_ = received.split(b" ", 2)
    assert version == b"HTTP/1.1", received[:200]
    assert received.count(b"HTTP/1.1 ") == 1, "two answers to one request"
    return int(status)


def get(service, path, *headers, host=HOST) -> int:
    return ask(service, f"GET {path} HTTP/1.1", host, *headers)


@pytest.fixture(autouse=True)
def still_answers(service):
    yield
    assert get(service, OWN, ALICE) == 200


@pytest.mark.parametrize(
    "path",
    [
        "/user/%2e%2e/admin/stats",
        "/user/../admin/stats",
        "/static/%2e%2e/%2e%2e/manage.py",
        "/static/..%2f..%2fmanage.py",
        "/static/%2e%2e%5cmanage.py",
        "/user/submissions%00",
        "/user/submissions%0d%0aX-Owned:1",
        "/user/submissions/%ff%fe",
        "/user/submissions/\xff",
        "/user/submissions;admin=1",
        "//user//%2e%2e//admin//stats",
        f"/leaderboards/{'a' * 60_000}",
        "/profile/rowsum/" + "%25" * 2000,
        "/user/submissions/99999999999999999999999999",
        "/user/submissions/-1",
        "/user/submissions/٣",
    ],
    ids=lambda path: ascii(path[:40]),
)
def test_a_path_with_a_trick_in_it_leads_nowhere(service, path):
    path = path.encode().decode("latin-1") if not path.isascii() else path

    assert get(service, path, ALICE) in (400, 401, 404, 414, 422)


@pytest.mark.parametrize(
    "header",
    [
        "X-HTTP-Method-Override: DELETE",
        "X-Original-URL: /admin/stats",
        "X-Rewrite-URL: /admin/stats",
        "X-Forwarded-Host: evil.example",
        "X-Forwarded-Prefix: /admin",
        "Forwarded: for=10.0.0.1;host=evil.example",
        "X-Popcorn-Cli-Id-2: bob-cli-id",
        "x_popcorn_cli_id: bob-cli-id",
        "Range: bytes=0-,0-,0-,0-",
        "Accept: text/html;q=nan, */*;q=-1",
        "Content-Type: multipart/form-data",
        "Cookie: " + "a=b; " * 2000,
        "Accept-Encoding: gzip, zstd, ../../etc",
    ],
    ids=lambda header: header[:30],
)
def test_a_header_that_means_something_elsewhere_means_nothing_here(service, header):
    assert get(service, OWN, ALICE, header) == 200
    assert get(service, "/admin/stats", header) in (401, 403)


def test_one_request_has_one_identity(service):
    """Two headers of the name are joined, which is nobody's id; never the one or the other's."""
    assert get(service, OWN, ALICE, "X-Popcorn-Cli-Id: bob-cli-id") == 401


@pytest.mark.parametrize(
    "header",
    [
        "X-Popcorn-Cli-Id: alice-cli-id\x00",
        "X-Popcorn-Cli-Id: alice-cli-id\nX-Owned: 1",
        "X-Popcorn-Cli-Id : alice-cli-id",
        "no colon at all",
        "X-Popcorn-Cli-Id: " + "a" * 200_000,
        "X-Popcorn-Cli-Id: \xff\xfe",
    ],
    ids=lambda header: ascii(header[:35]),
)
def test_a_header_that_cannot_be_read_identifies_nobody(service, header):
    assert get(service, OWN, header) in (0, 400, 401, 431)


@pytest.mark.parametrize("host", ["Host: evil.example", "Host: 127.0.0.1:1, evil.example", "Host:"])
def test_another_host_is_refused(service, host):
    assert get(service, OWN, ALICE, host=host) == 400


@pytest.mark.parametrize(
    ("lines", "body"),
    [
        # Lengths that two servers in a row may read differently.
        (["Content-Length: 4", "Content-Length: 40"], b"abcd"),
        (["Content-Length: 4", "Transfer-Encoding: chunked"], b"0\r\n\r\nGET / HTTP/1.1\r\n\r\n"),
        (["Transfer-Encoding: chunked, identity"], b"0\r\n\r\n"),
        (["Transfer-Encoding: xchunked"], b"0\r\n\r\n"),
        (["Content-Length: -1"], b""),
        (["Content-Length: 0x10"], b""),
        (["Transfer-Encoding: chunked"], b"zz\r\n"),
        (["Transfer-Encoding: chunked"], b"FFFFFFFFFFFFFFFFF\r\n"),
    ],
    ids=lambda value: ascii(value)[:60],
)
def test_a_body_of_doubtful_length_is_one_request_and_no_success(service, lines, body):
    status = ask(service, f"POST {OWN} HTTP/1.1", HOST, ALICE, *lines, body=body)

    assert status == 0 or 400 <= status < 500


@pytest.mark.parametrize(
    "line",
    [
        "GET",
        "GET / HTTP/9.9",
        "GET /\x00 HTTP/1.1",
        "DELETE / HTTP/1.1",
        "PROPFIND /user/submissions HTTP/1.1",
        "GET http://evil.example/admin/stats HTTP/1.1",
        "CONNECT 127.0.0.1:22 HTTP/1.1",
        "\x16\x03\x01\x02\x00\x01",
        "PRI * HTTP/2.0",
    ],
    ids=ascii,
)
def test_a_request_line_of_another_kind_is_refused(service, line):
    status = ask(service, line, HOST, ALICE)

    assert status == 0 or 400 <= status < 500


@pytest.mark.parametrize(
    ("path", "host", "said"),
    [
        (f"{OWN}?{'a&' * 2000}", HOST, "GET/POST parameters exceeded"),
        (OWN, "Host: evil.example", "Invalid HTTP_HOST header"),
    ],
    ids=["parameters", "host"],
)
def test_a_suspicious_request_is_one_warning_in_the_log(service, path, host, said):
    logged = service.log()

    assert get(service, path, ALICE, host=host) == 400
    new = service.log().removeprefix(logged)
    assert "Traceback" not in new
    [line] = [line for line in new.splitlines() if said in line]
    assert " WARNING django.security." in line
