"""The whole set once: nginx in front of two web processes on PostgreSQL and Redis."""

from __future__ import annotations

import pytest

from tests.modal.postgres import Postgres, find_programs
from tests.services.parts import NGINX, REDIS, ManyProcesses, Nginx, run_redis


@pytest.fixture(scope="session")
def postgres():
    if find_programs() is None:
        pytest.skip("PostgreSQL is not installed")
    made = Postgres("-c", "max_connections=20")
    yield made
    made.close()


@pytest.fixture(scope="session")
def cache_url(tmp_path_factory):
    if REDIS is None:
        pytest.skip("redis-server is not installed")
    with run_redis(tmp_path_factory.mktemp("redis")) as url:
        yield url


@pytest.fixture(scope="session")
def whole(tmp_path_factory, postgres, cache_url):
    """(service, nginx), both started, without a dispatcher: what is accepted waits."""
    if NGINX is None:
        pytest.skip("nginx is not installed")
    folder = tmp_path_factory.mktemp("whole")
    (folder / "static").mkdir()
    (folder / "static" / "base.css").write_text("body {}\n" * 100)
    service = ManyProcesses(folder, postgres, cache_url, DATABASE_POOL_MAX=4)
    nginx = Nginx(folder / "nginx", service.port, folder / "static")
    service.env["PUBLIC_URL"] = nginx.base_url
    service.prepare()
    try:
        service.start_web()
        nginx.start()
        yield service, nginx
    finally:
        service.stop_all()
        if hasattr(nginx, "process"):
            nginx.stop()
