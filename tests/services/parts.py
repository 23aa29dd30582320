"""The parts of production as processes of the test: nginx and Redis; PostgreSQL has its own file."""

from __future__ import annotations

import json
import os
import shutil
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import redis

from tests.modal.postgres import Postgres
from tests.server.service import PATIENCE_S, ROOT, Service, free_port, wait_for

# Debian puts servers where only root looks.
SEARCHED = os.environ["PATH"] + os.pathsep + "/usr/sbin"
NGINX = shutil.which("nginx", path=SEARCHED)
GPU = {"runner": "recorded", "sm": "100", "ncu": True, "max_in_flight": 64}
REDIS = shutil.which("redis-server", path=SEARCHED)


@contextmanager
def run_redis(folder: Path) -> Iterator[str]:
    """The URL of a Redis that ends with the block."""
    assert REDIS is not None
    port = free_port()
    argv = [REDIS, "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", str(folder)]
    process = subprocess.Popen(argv, stdout=subprocess.DEVNULL)
    try:
        client = redis.Redis(port=port)
        wait_for(lambda: _pings(client))
        client.close()
        yield f"redis://127.0.0.1:{port}/0"
    finally:
        process.kill()
        process.wait()


def _pings(client) -> bool:
    try:
        return bool(client.ping())
    except redis.RedisError:
        return False


class Nginx:
    """deploy/nginx.conf itself, with the ports and paths of the test in the place of its own."""

    def __init__(self, folder: Path, web_port: int, static: Path) -> None:
        folder.mkdir()
        self.folder, self.port, plain_port = folder, free_port(), free_port()
        self.base_url = f"https://127.0.0.1:{self.port}"
        certificate, key = self._make_certificate()
        site = (ROOT / "deploy/nginx.conf").read_text()
        for written, here in {
            "listen [::]:80;": "",
            "listen [::]:443 ssl http2;": "",
            "listen 80;": f"listen 127.0.0.1:{plain_port};",
            "listen 443 ssl http2;": f"listen 127.0.0.1:{self.port} ssl http2;",
            "127.0.0.1:8000": f"127.0.0.1:{web_port}",
            "/etc/ssl/kernelbot/fullchain.pem": str(certificate),
            "/etc/ssl/kernelbot/privkey.pem": str(key),
            "/opt/kernelbot/static/": f"{static}/",
            "/var/log/nginx/kernelbot.log": str(folder / "access.log"),
        }.items():
            assert written in site, f"deploy/nginx.conf has no {written!r}"
            site = site.replace(written, here)
        (folder / "site.conf").write_text(site)
        # The main file compresses all that it may, as an operator's may do.
        temporary = "".join(
            f"{kind}_temp_path {folder}/{kind};"
            for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        )
        (folder / "nginx.conf").write_text(
            f"user {'root' if os.geteuid() == 0 else 'nobody'}; worker_processes 1; daemon off;"
            f"pid {folder}/pid; error_log {folder}/error.log;"
            "events { worker_connections 2048; }"
            f"http {{ {temporary} types {{ text/css css; }} gzip on; gzip_min_length 1;"
            f"gzip_types *; gzip_proxied any; include {folder}/site.conf; }}"
        )
        self.verify = ssl.create_default_context(cafile=str(certificate))

    def _make_certificate(self) -> tuple[Path, Path]:
        certificate, key = self.folder / "cert.pem", self.folder / "key.pem"
        subprocess.run(
            [
                *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt"),
                *("ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"),
                *("-keyout", str(key), "-out", str(certificate), "-subj", "/CN=127.0.0.1"),
                *("-addext", "subjectAltName=IP:127.0.0.1"),
            ],
            check=True,
            capture_output=True,
        )
        return certificate, key

    def start(self) -> None:
        assert NGINX is not None
        self.process = subprocess.Popen(
            [NGINX, "-e", str(self.folder / "error.log"), "-c", str(self.folder / "nginx.conf")]
        )
        wait_for(self._answers)

    def _answers(self) -> bool:
        try:
            with self.client() as client:
                return client.get("/static/none").status_code == 404
        except httpx.TransportError:
            return False

    def client(self, cli_id: str = "alice-cli-id", **options) -> httpx.Client:
        options.setdefault("headers", {"X-Popcorn-Cli-Id": cli_id})
        return httpx.Client(
            base_url=self.base_url,
            verify=self.verify,
            timeout=PATIENCE_S,
            trust_env=False,
            **options,
        )

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait()


class ManyProcesses(Service):
    """A service on PostgreSQL whose web server is what the systemd unit starts: `run_web`."""

    def __init__(self, folder: Path, postgres: Postgres, cache_url: str, **settings) -> None:
        self.postgres = postgres
        super().__init__(
            folder,
            **{
                "DATABASE_URL": postgres.url,
                "CACHE_URL": cache_url,
                "WEB_PROCESSES": 2,
                "STATIC_ROOT": folder / "static",
                "TRUSTED_PROXIES": "127.0.0.1",
                # Production refuses the fake runner; its command checks that.
                "GPU_TYPES": json.dumps({"B200": GPU}),
            }
            | settings,
        )

    def start_web(self) -> None:
        command = [sys.executable, "manage.py", "run_web", "--port", str(self.port)]
        self._start("web", command, self.env)
        wait_for(lambda: self._process("web").poll() is not None or self._answers())
        assert self._process("web").poll() is None, self.log()

    def web_pids(self) -> list[int]:
        """Of the processes that serve, not of their parent."""
        parent = self.pid("web")
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            children = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
            serving = [int(pid) for pid in children if _is_worker(pid)]
            if len(serving) == int(self.env["WEB_PROCESSES"]):
                return serving
            time.sleep(0.1)
        raise AssertionError("not all web processes began")


def _is_worker(pid: str) -> bool:
    return b"spawn_main" in Path(f"/proc/{pid}/cmdline").read_bytes()
