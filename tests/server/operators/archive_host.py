"""Stands for the host of GitHub's archives: real HTTP, on a good and on a bad day."""

from __future__ import annotations

import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote


class ArchiveHost:
    """`answers` maps a path to status, headers and body; what is not there is a 404 page.

    A path in `dripping` sends its body a byte at a time, and says that it is long.
    """

    def __init__(self):
        self.answers = {}
        self.dripping = set()
        self.asked = []
        host = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                path = unquote(self.path)
                host.asked.append((path, dict(self.headers)))
                page = (404, {"Content-Type": "text/html"}, b"<html>404</html>")
                status, headers, body = host.answers.get(path, page)
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                drips = path in host.dripping
                self.send_header("Content-Length", str(1_000_000 if drips else len(body)))
                self.end_headers()
                try:
                    if drips:
                        host.drip(self.wfile)
                    else:
                        self.wfile.write(body)
                except OSError:
                    self.close_connection = True  # the other side went away

            def log_message(self, *_):
                pass

        self.closing = threading.Event()
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def netloc(self):
        return f"127.0.0.1:{self.server.server_address[1]}"

    def drip(self, file):
        ends = time.monotonic() + 60
        while time.monotonic() < ends and not self.closing.wait(0.1):
            file.write(b"x")
            file.flush()

    def serve(
        self, body, *, repository="gpu-mode/reference-kernels", branch="main", status=200, **headers
    ):
        path = f"/{repository}/zip/refs/heads/{branch}"
        self.answers[path] = (status, headers, body)
        return path

    def close(self):
        self.closing.set()
        self.server.shutdown()
        self.server.server_close()
