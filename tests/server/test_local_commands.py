"""`make demo` and `make serve`, as a newcomer runs them: real processes in a fresh folder."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest

from kernelbot_site.management.commands.demo import free_port

ROOT = Path(__file__).resolve().parents[2]
# Neither this test's settings nor its GPUs: a newcomer has configured nothing.
NEWCOMER = {"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/")}


@pytest.fixture
def newcomer(tmp_path):
    return NEWCOMER | {"DATA_DIR": str(tmp_path / "var")}


def test_the_demo_profiles_the_example_and_shows_what_came_back(newcomer, tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "kernelbot_site.local", "demo"],
        cwd=ROOT,
        env=newcomer,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert "synthetic" in done.stdout.splitlines()[0]
    assert "NCU 2025.2.1" in done.stdout
    assert re.search(r"vector_add_kernel +184\.32 us +6\.22 %", done.stdout)
    assert len(list((tmp_path / "var/demo").glob("*/profile.*/profile.ncu-rep"))) == 3


def test_serve_prints_a_login_that_works_and_ends_with_its_children(newcomer):
    port = free_port()
    command = [sys.executable, "-m", "kernelbot_site.local", "serve", "--port", str(port)]
    serving = subprocess.Popen(command, cwd=ROOT, env=newcomer, stdout=subprocess.PIPE, text=True)
    try:
        lines = [serving.stdout.readline() for _ in range(4)]
        address = f"http://127.0.0.1:{port}"
        assert address in lines[0]
        name, password = re.search(r"(\S+) / (\S+)$", lines[1]).groups()
        with httpx.Client(base_url=address, trust_env=False) as browser:
            token = browser.get("/operators/login/").cookies["csrftoken"]
            form = {"username": name, "password": password, "csrfmiddlewaretoken": token}
            answer = browser.post("/operators/login/", data=form | {"next": "/operators/"})
            assert answer.status_code == 302
            assert "Profile requests" in browser.get("/operators/").text
    finally:
        serving.send_signal(signal.SIGTERM)
        serving.wait(timeout=30)
        serving.stdout.close()

    assert serving.returncode == 0
    with pytest.raises(httpx.ConnectError):
        httpx.get(f"{address}/health", trust_env=False)


def test_serve_does_not_take_a_stranger_on_its_port_for_its_own_web_server(newcomer):
    with socket.create_server(("127.0.0.1", 0)) as stranger:
        port = stranger.getsockname()[1]
        done = subprocess.run(
            [sys.executable, "-m", "kernelbot_site.local", "serve", "--port", str(port)],
            cwd=ROOT,
            env=newcomer,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    assert done.returncode == 1
    assert f"cannot listen at http://127.0.0.1:{port}" in done.stderr
    assert "Traceback" not in done.stderr
    assert "CLI id" not in done.stdout


def test_a_killed_supervisor_leaves_no_server_behind(newcomer):
    port = free_port()
    command = [sys.executable, "-m", "kernelbot_site.local", "serve", "--port", str(port)]
    serving = subprocess.Popen(command, cwd=ROOT, env=newcomer, stdout=subprocess.PIPE, text=True)
    assert str(port) in serving.stdout.readline()

    serving.kill()
    serving.wait(timeout=30)
    serving.stdout.close()

    deadline = time.monotonic() + 30
    while answers(f"http://127.0.0.1:{port}/health"):
        assert time.monotonic() < deadline
        time.sleep(0.2)


def answers(url: str) -> bool:
    try:
        return httpx.get(url, trust_env=False).is_success
    except httpx.HTTPError:
        return False
