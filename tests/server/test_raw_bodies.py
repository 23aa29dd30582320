"""Bodies that no decent client sends, over a raw socket: cut off early, answered, recorded (FR-26)."""

from __future__ import annotations

import json
import os
import socket
import time

import pytest

from tests.server.popcorn import PATH, SUBMISSION
from tests.server.service import PATIENCE_S, wait_for

LIMIT = 1_000_000 + 64 * 1024
HEAD = (
    f"POST {PATH} HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Popcorn-Cli-Id: alice-cli-id\r\n"
    "Content-Type: multipart/form-data; boundary=x\r\n"
)
PART = b'--x\r\nContent-Disposition: form-data; name="file"; filename="submission.py"\r\n\r\n'


@pytest.fixture
def connect(service):
    opened = []

    def connect(to=service):
        opened.append(socket.create_connection(("127.0.0.1", to.port), timeout=PATIENCE_S))
        return opened[-1]

    yield connect
    for each in opened:
        each.close()


def read_answer(connection):
    """Status, headers and the JSON body of an answer with a Content-Length."""
    received = b""
    while b"\r\n\r\n" not in received:
        piece = connection.recv(65536)
        assert piece, f"closed after {received!r}"
        received += piece
    head, _, body = received.partition(b"\r\n\r\n")
    lines = head.decode().split("\r\n")
    headers = {k.lower(): v for k, _, v in (line.partition(": ") for line in lines[1:])}
    while len(body) < int(headers["content-length"]):
        body += connection.recv(65536)
    return int(lines[0].split()[1]), headers, json.loads(body)


def assert_cut(service, connection, status=413, code="file_too_large"):
    """Answered, recorded for its sender, and the connection closed."""
    answered, headers, body = read_answer(connection)
    assert answered == status
    assert body["code"] == code
    assert isinstance(body["detail"], str)
    assert headers["connection"] == "close"
    rows = service.rows(
        "SELECT refusal_status, refusal_reason FROM profiling_profilerequest WHERE request_id = ?",
        headers["x-request-id"],
    )
    assert rows == [{"refusal_status": status, "refusal_reason": body["detail"]}]


def test_a_declared_length_over_the_limit_is_refused_without_reading(service, connect):
    connection = connect()
    connection.sendall(f"{HEAD}Content-Length: 5000000000\r\n\r\n".encode() + PART)

    assert_cut(service, connection)


def test_a_client_that_asks_first_is_told_before_it_sends(service, connect):
    connection = connect()
    connection.sendall(f"{HEAD}Content-Length: 5000000\r\nExpect: 100-continue\r\n\r\n".encode())

    assert_cut(service, connection)  # and not 100 Continue


def test_a_length_that_is_too_small_runs_nothing(service, connect):
    """What follows the declared body is no HTTP request, so the web server itself refuses it."""
    accepted = "SELECT count(*) AS n FROM profiling_profilerequest WHERE job_id IS NOT NULL"
    before = service.rows(accepted)
    connection = connect()
    connection.sendall(f"{HEAD}Content-Length: 10\r\n\r\n".encode() + PART + SUBMISSION)

    received = b""
    while piece := connection.recv(65536):
        received += piece

    assert received.startswith((b"HTTP/1.1 400", b"HTTP/1.1 422"))
    assert service.rows(accepted) == before


def test_an_endless_chunked_body_is_cut_off(service, connect):
    connection = connect()
    connection.sendall(f"{HEAD}Transfer-Encoding: chunked\r\n\r\n".encode())
    chunk = b"10000\r\n" + b"#" * 0x10000 + b"\r\n"
    sent = 0
    connection.sendall(b"%x\r\n" % len(PART) + PART + b"\r\n")
    while sent < 200 * 2**20:
        try:
            connection.sendall(chunk)
        except OSError:  # the server has had enough
            break
        sent += len(chunk)
        connection.setblocking(False)
        try:
            if connection.recv(1, socket.MSG_PEEK):
                break
        except BlockingIOError:
            pass
        finally:
            connection.settimeout(PATIENCE_S)

    assert LIMIT < sent < 64 * 2**20
    assert_cut(service, connection)


def test_a_chunked_upload_of_a_sane_size_is_a_good_one(service, connect):
    connection = connect()
    body = PART + SUBMISSION + b"\r\n--x--\r\n"
    connection.sendall(
        f"{HEAD}Prefer: respond-async\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
        + b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)
    )

    assert read_answer(connection)[0] == 202


def test_a_body_that_trickles_in_is_given_up(make_service, connect):
    slow = make_service(UPLOAD_LIMIT_S=0.5)
    slow.start_web()
    connection = connect(slow)
    connection.sendall(f"{HEAD}Content-Length: 1000\r\n\r\n".encode() + PART)

    assert_cut(slow, connection, 408, "upload_too_slow")


def test_a_client_that_closes_its_writing_half_gets_its_answer_or_nothing_bad(service, connect):
    """The body is whole, so the request stands; the client only says that it sends no more."""
    connection = connect()
    body = PART + SUBMISSION + b"\r\n--x--\r\n"
    connection.sendall(
        f"{HEAD}Prefer: respond-async\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body
    )
    connection.shutdown(socket.SHUT_WR)

    received = connection.recv(65536)

    assert received == b"" or received.startswith(b"HTTP/1.1 202")


def test_clients_that_hang_up_half_way_leave_nothing_behind(service, connect):
    """FR-26: no row, no traceback, no file, no descriptor."""
    pid = service.pid("web")
    count = "SELECT count(*) AS n FROM profiling_profilerequest"
    rows, log = service.rows(count), service.log()
    files = len(os.listdir(f"/proc/{pid}/fd"))

    for length in (1000, 900_000):
        for _ in range(10):
            with connect() as connection:
                connection.sendall(f"{HEAD}Content-Length: {length}\r\n\r\n".encode() + PART)

    wait_for(lambda: len(os.listdir(f"/proc/{pid}/fd")) <= files)
    time.sleep(0.2)
    assert service.rows(count) == rows
    assert "Traceback" not in service.log()[len(log) :]
