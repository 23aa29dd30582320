"""The whole service as processes that can be taken down one by one.

nginx with deploy/nginx.conf, `run_web` with two workers, two dispatchers, PostgreSQL that really
writes to the disk, Redis, an S3 server behind a proxy of its own, and the fake Modal, which runs each
call in the real container runtime. Only the dispatchers have Modal's token.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import redis

from tests.fake_modal.server import FakeModal
from tests.faults.program import Part, Program, Worker
from tests.modal.conftest import DEPLOYMENT
from tests.modal.postgres import Postgres, find_programs
from tests.modal.stack import make_tools, slow_ncu
from tests.modal.test_deploy import deploy
from tests.object_store import AWS, BUCKET, ObjectStore
from tests.server.service import ROOT, free_port
from tests.services.parts import NGINX, REDIS, Nginx

PEOPLE = ("alice", "bob", "carol", "dave")
WEB_PROCESSES = 2
LEASE_S = 6
DISPATCHERS = ("dispatcher 1", "dispatcher 2")


def missing_programs() -> list[str]:
    found = {"nginx": NGINX, "redis-server": REDIS, "PostgreSQL": find_programs()}
    return [name for name, program in found.items() if program is None]


class Stack:
    """`parts` by name, all running; `close` ends all of it."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.tmp, self.logs = folder, folder / "tmp", folder / "logs"
        for made in (self.tmp, self.logs, folder / "static", folder / "data"):
            made.mkdir()
        self.tools = make_tools(folder / "tools")
        slow_ncu(self.tools, 0.5)
        with ThreadPoolExecutor() as at_once:
            postgres = at_once.submit(Postgres, "-c", "max_connections=60")
            s3 = at_once.submit(ObjectStore)
            modal = at_once.submit(self._make_modal)
            self.postgres, self.s3, self.modal = postgres.result(), s3.result(), modal.result()
        self.web_port, self.redis_port, self.s3_port = free_port(), free_port(), free_port()
        self.nginx = Nginx(folder / "nginx", self.web_port, folder / "static")
        self.env = self._environment()
        self.cli_ids = self._prepare()
        self.parts = self._parts()
        self.kinds = dict.fromkeys(self.parts, ("killed", "frozen", "restarted"))
        # It knows no orderly end: Modal's own are not ours to order.
        self.kinds["fake modal"] = ("killed", "frozen")

    def _make_modal(self) -> FakeModal:
        path = f"{self.tools}:{os.environ['PATH']}"
        made = FakeModal(self.folder / "modal", container_path=path)
        done = deploy(made)
        assert done.returncode == 0, done.stderr
        return made

    def _environment(self) -> dict[str, str]:
        l4 = {"runner": "modal", "sm": "89", "ncu": True, "max_in_flight": 3}
        return AWS | {
            "PATH": os.environ["PATH"],
            "TMPDIR": str(self.tmp),
            "DJANGO_SETTINGS_MODULE": "kernelbot_site.settings",
            "SECRET_KEY": "only for tests, and long enough for the checks of Django",
            "DATA_DIR": str(self.folder / "data"),
            "STATIC_ROOT": str(self.folder / "static"),
            "DATABASE_URL": self.postgres.url,
            "DATABASE_POOL_MAX": "8",
            "CACHE_URL": f"redis://127.0.0.1:{self.redis_port}/0",
            "PUBLIC_URL": self.nginx.base_url,
            "TRUSTED_PROXIES": "127.0.0.1",
            "WEB_PROCESSES": str(WEB_PROCESSES),
            "GPU_TYPES": json.dumps({"L4": l4}),
            "MODAL_DEPLOYMENT": DEPLOYMENT,
            "REPORTS_STORAGE_URL": f"s3://{BUCKET}",
            "REPORTS_S3_ENDPOINT": f"http://127.0.0.1:{self.s3_port}",
            "PROFILE_RATE": "100000/m",
            "LEASE_S": str(LEASE_S),
            "POLL_EVERY_S": "0.3",
            "START_LIMIT_S": "6",
            "START_MARGIN_S": "1",
            "RETRY_DELAY_S": "0.5",
            "STREAM_STATUS_EVERY_S": "5",
        }

    def _prepare(self) -> dict[str, str]:
        """CLI ids by name. Leaderboard rowsum_cpu is on the L4 here."""
        problems = self.folder / "problems"
        shutil.copytree(ROOT / "examples/problems", problems)
        boards = problems / "examples.yaml"
        boards.write_text(boards.read_text().replace("gpus: [CPU]", "gpus: [L4]"))
        done = subprocess.run(
            [sys.executable, "-m", "tests.faults.prepare", str(problems), *PEOPLE],
            cwd=ROOT,
            env=self.env,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        ids: dict[str, str] = json.loads(done.stdout.splitlines()[-1])
        return ids

    def _parts(self) -> dict[str, Part]:
        made = {
            "redis": self._program(
                "redis",
                [REDIS, "--port", str(self.redis_port), "--bind", "127.0.0.1", "--save", ""],
                self._redis_is_up,
            ),
            "s3": S3(self._s3_proxy(), self.s3),
            "nginx": self._nginx(self.nginx.folder / "nginx.conf", self._nginx_is_up),
            "web": self._program(
                "web",
                [sys.executable, "manage.py", "run_web", "--port", str(self.web_port)],
                lambda: _answers(f"http://127.0.0.1:{self.web_port}/health"),
            ),
            **{name: self._dispatcher(name) for name in DISPATCHERS},
        }
        with ThreadPoolExecutor() as at_once:
            list(at_once.map(lambda part: part.start(), made.values()))
        worker = Worker(made["web"], WEB_PROCESSES)
        worker.start()
        outside = {"postgres": Database(self.postgres), "fake modal": Provider(self.modal)}
        return made | {"web worker": worker} | outside

    def _dispatcher(self, name: str) -> Program:
        env = self.env | self.modal.environment()
        argv = [sys.executable, "manage.py", "run_dispatcher"]
        return self._program(name, argv, lambda: True, env=env, whole=False)

    def _s3_proxy(self) -> Program:
        folder = self.folder / "s3-proxy"
        folder.mkdir()
        (folder / "nginx.conf").write_text(
            f"user {'root' if os.geteuid() == 0 else 'nobody'}; worker_processes 1; daemon off;"
            f"pid {folder}/pid; error_log {folder}/error.log; events {{ worker_connections 512; }}"
            f"http {{ access_log off; client_body_temp_path {folder}/body; "
            f"proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/f; "
            f"uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s; client_max_body_size 0; "
            f"server {{ listen 127.0.0.1:{self.s3_port}; proxy_request_buffering off; "
            f"proxy_buffering off; proxy_http_version 1.1; location / {{ "
            f"proxy_pass {self.s3.url}; proxy_set_header Host $http_host; }} }} }}"
        )
        return self._nginx(
            folder / "nginx.conf", lambda: _answers(f"http://127.0.0.1:{self.s3_port}/")
        )

    def _nginx(self, config: Path, is_up: Callable[[], bool]) -> Program:
        errors = config.with_name("error.log")
        argv = [NGINX, "-e", str(errors), "-c", str(config)]
        return self._program(config.parent.name, argv, is_up)

    def _program(
        self,
        name: str,
        argv: list[Any],
        is_up: Callable[[], bool],
        *,
        env: dict[str, str] | None = None,
        whole: bool = True,
    ) -> Program:
        log = self.logs / f"{name.replace(' ', '-')}.log"
        return Program(argv, env=env or self.env, log=log, is_up=is_up, whole=whole)

    def _redis_is_up(self) -> bool:
        with contextlib.closing(redis.Redis(port=self.redis_port, socket_timeout=2)) as client:
            try:
                return bool(client.ping())
            except redis.RedisError:
                return False

    def _nginx_is_up(self) -> bool:
        return _answers(f"{self.nginx.base_url}/static/", verify=self.nginx.verify)

    def is_ready(self) -> bool:
        """As a monitor asks, the whole way through nginx to database and storage."""
        try:
            with self.nginx.client(limits=httpx.Limits(max_keepalive_connections=0)) as client:
                return client.get("/ready", timeout=3).is_success
        except httpx.HTTPError:
            return False

    def rows(self, sql: str, *values: object) -> list[dict[str, Any]]:
        return self.postgres.rows(sql, *values)

    def manage(self, *arguments: str) -> str:
        done = subprocess.run(
            [sys.executable, "manage.py", *arguments],
            cwd=ROOT,
            env=self.env,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def end_service(self) -> None:
        """In order, as an operator would; what it ran on is left."""
        for name in ("nginx", "web", *DISPATCHERS):
            self.parts[name].stop()

    def close(self) -> None:
        for name, part in getattr(self, "parts", {}).items():
            if isinstance(part, Program | S3) and name not in ("web worker",):
                part.thaw()
                part.kill()
        self.modal.thaw()
        self.modal.close()
        self.s3.kill()
        self.postgres.close()


class S3:
    """The proxy is what is killed, as objects live in the server's memory; both are frozen."""

    def __init__(self, proxy: Program, server: ObjectStore) -> None:
        self.proxy, self.server = proxy, server
        self.start, self.stop, self.kill = proxy.start, proxy.stop, proxy.kill

    def freeze(self) -> None:
        self.proxy.freeze()
        self.server.freeze()

    def thaw(self) -> None:
        self.server.thaw()
        self.proxy.thaw()


class Database:
    """PostgreSQL: its kill is a loss of power, its stop the fast shutdown."""

    def __init__(self, postgres: Postgres) -> None:
        self.kill, self.start = postgres.kill, postgres.start
        self.freeze, self.thaw = postgres.freeze, postgres.thaw
        self.process = postgres

    def stop(self) -> None:
        self.process.process.send_signal(signal.SIGINT)
        self.process.process.wait()


class Provider:
    def __init__(self, modal: FakeModal) -> None:
        self.kill, self.start = modal.kill, modal.start
        self.freeze, self.thaw = modal.freeze, modal.thaw

    def stop(self) -> None:
        self.kill()


def _answers(url: str, **options: Any) -> bool:
    """Whatever it says."""
    try:
        httpx.get(url, timeout=2, trust_env=False, **options)
    except httpx.HTTPError:
        return False
    return True
