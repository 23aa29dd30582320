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
from tests.shared import SHARED

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


CPU = ("--leaderboard", "rowsum_cpu", "--gpu", "CPU", "--mode")
COMMANDS = [
    ("leaderboards",),
    ("gpus", "rowsum_cpu"),
    ("submit", "examples/problems/rowsum_cpu/submission.py", *CPU, "test"),
    ("submit", "examples/problems/rowsum_cpu/submission.py", *CPU, "benchmark"),
    ("submit", "examples/problems/rowsum_cpu/submission.py", *CPU, "leaderboard"),
    ("submissions", "list", "--leaderboard", "rowsum_cpu"),
    ("submissions", "show", "1"),
    ("admin", "stop"),
    ("admin", "start"),
    ("admin", "stats"),
    ("admin", "get-submission", "1"),
    ("submissions", "delete", "1", "--force"),
    ("admin", "delete-submission", "2"),
]


@pytest.mark.skipif(SHARED is None, reason="popcorn_probe is not beside the checkout")
def test_the_strict_probe_goes_through_its_commands_against_serve(newcomer, tmp_path):
    port = free_port()
    command = [sys.executable, "-m", "kernelbot_site.local", "serve", "--port", str(port)]
    env = newcomer | {"ADMIN_TOKEN": "a-token-that-a-newcomer-made-up"}
    serving = subprocess.Popen(command, cwd=ROOT, env=env, stdout=subprocess.PIPE, text=True)
    try:
        cli_id = [serving.stdout.readline() for _ in range(3)][-1].split()[-1]
        options = ["--base", f"http://127.0.0.1:{port}", "--cli-id", cli_id, "--strict"]
        options += ["--admin-token", "a-token-that-a-newcomer-made-up", "--save-dir", str(tmp_path)]
        probe = [sys.executable, str(SHARED / "tools" / "popcorn_probe.py"), *options]
        ended = {
            words: subprocess.run(
                [*probe, *words], cwd=ROOT, capture_output=True, text=True, check=False
            )
            for words in COMMANDS
        }
    finally:
        serving.send_signal(signal.SIGTERM)
        serving.wait(timeout=30)
        serving.stdout.close()

    failed = {words: each.stdout + each.stderr for words, each in ended.items() if each.returncode}
    assert failed == {}


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
