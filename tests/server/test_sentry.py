"""Errors of web and dispatcher reach a Sentry, here a server of ours, and no secret does."""

from __future__ import annotations

import gzip
import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from tests.server.service import Service, wait_for

SECRET = "a-token-of-operators-that-nobody-may-read"


@contextmanager
def sentry():
    """Its DSN, and the events that came."""
    events = []

    class Store(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.headers.get("Content-Encoding") == "gzip":
                body = gzip.decompress(body)
            events.extend(events_of(body))
            self.send_response(200)
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"{}")

        def log_message(self, *of):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Store)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://public@127.0.0.1:{server.server_port}/1", events
    finally:
        server.shutdown()
        server.server_close()


def events_of(envelope: bytes):
    """Lines of JSON: a head, then head and payload of each item."""
    lines = envelope.split(b"\n")[1:]
    for head, payload in zip(lines[::2], lines[1::2], strict=False):
        if json.loads(head)["type"] == "event":
            yield json.loads(payload)


@pytest.fixture
def start(tmp_path):
    made = []

    def start(dsn):
        service = Service(tmp_path, SENTRY_DSN=dsn, ADMIN_TOKEN=SECRET).prepare()
        made.append(service)
        service.start_web()
        service.start_dispatcher()
        return service

    yield start
    for service in made:
        service.stop_all()


def test_errors_are_reported_with_their_request_and_job_and_without_secrets(start):
    with sentry() as (dsn, events):
        service = start(dsn)
        bad = service.folder / "no-envelope"
        bad.write_text(f"no envelope, but {SECRET}")
        service.plan(envelope=str(bad))
        with service.client() as client:
            request = client.post(
                "/profile/rowsum/B200",
                files={"file": ("submission.py", b"import torch\ndef custom_kernel(data): pass\n")},
                data={"benchmark_index": "0"},
                headers={"Prefer": "respond-async"},
            ).json()
            wait_for(lambda: [e for e in events if "a bad envelope" in json.dumps(e)])
            assert client.get(f"/user/submissions?{'a&' * 2000}").status_code == 400
            service.database.take_away()
            refused = client.get(f"/user/submissions?secret={SECRET}")
            wait_for(lambda: [e for e in events if e["request"]])
            service.database.bring_back()

    assert refused.status_code == 503
    [of_job] = [event for event in events if "a bad envelope" in json.dumps(event)]
    job = service.rows("SELECT job_id FROM profiling_profilerequest")[0]["job_id"]
    assert of_job["tags"]["job_id"].replace("-", "") == job
    assert request["id"]
    of_request = next(event for event in events if event["request"])
    assert of_request["request"] == {
        "method": "GET",
        "url": f"{service.base_url}/user/submissions",
    }
    assert of_request["tags"]["request_id"] == refused.headers["X-Request-Id"]
    sent = json.dumps(events)
    assert "parameters exceeded" not in sent, "whatever a stranger sends is no event"
    for hidden in (SECRET, "alice-cli-id", service.env["SECRET_KEY"], "custom_kernel(data)"):
        assert hidden not in sent
    assert '"vars"' not in sent
