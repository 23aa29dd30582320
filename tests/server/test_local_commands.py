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
from tests.server.operators.archive_host import ArchiveHost
from tests.server.operators.problems import problem_files, zipped
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


RIGHT = "examples/problems/rowsum_cpu/submission.py"
CPU = ("--leaderboard", "rowsum_cpu", "--gpu", "CPU", "--mode")
VECTORADD = ("examples/problems/vectoradd_py/submission.py", "--leaderboard", "vectoradd")
COMMANDS = [
    ("register", "github"),
    ("leaderboards",),
    ("gpus", "rowsum_cpu"),
    ("submit", RIGHT, *CPU, "test"),
    ("submit", RIGHT, *CPU, "benchmark"),
    ("submit", RIGHT, *CPU, "leaderboard"),
    ("submit", *VECTORADD, "--gpu", "B200", "--profile"),
    ("submit", *VECTORADD, "--gpu", "B200", "--profile-brev"),
    ("submissions", "list", "--leaderboard", "rowsum_cpu"),
    ("submissions", "show", "1"),
    ("admin", "stop"),
    ("admin", "start"),
    ("admin", "stats"),
    ("admin", "get-submission", "1"),
    ("submissions", "delete", "1", "--force"),
    ("admin", "delete-submission", "2"),
    ("admin", "update-problems", "--problem-set", "demo"),
    ("admin", "create-leaderboard", "rowsum_cpu"),
    ("admin", "generate-invites", "--leaderboards", "rowsum_cpu-dev", "--count", "1"),
    ("admin", "list-invites", "rowsum_cpu-dev"),
    ("join", "{code}"),
    ("admin", "revoke-invite", "{code}"),
    ("admin", "delete-leaderboard", "rowsum_cpu-dev"),
]


@pytest.mark.skipif(SHARED is None, reason="popcorn_probe is not beside the checkout")
def test_the_strict_probe_goes_through_every_command_against_serve(newcomer, tmp_path):
    archives, port = ArchiveHost(), free_port()
    archives.serve(zipped(problem_files()))
    command = [sys.executable, "-m", "kernelbot_site.local", "serve", "--port", str(port)]
    env = newcomer | {
        "ADMIN_TOKEN": "a-token-that-a-newcomer-made-up",
        "GITHUB_CLIENT_ID": "of-this-service",
        "GITHUB_CLIENT_SECRET": "of-this-service",
        "GITHUB_ARCHIVES_URL": f"http://{archives.netloc}",
        "PROBLEM_HOSTS": archives.netloc,
        "PROBLEM_SCHEMES": "https,http",
        "DEBUG": "1",  # without it, only https is fetched from
    }
    serving = subprocess.Popen(command, cwd=ROOT, env=env, stdout=subprocess.PIPE, text=True)
    base = f"http://127.0.0.1:{port}"
    try:
        cli_id = [serving.stdout.readline() for _ in range(3)][-1].split()[-1]
        options = ["--base", base, "--brev-base", base, "--cli-id", cli_id, "--strict"]
        options += ["--admin-token", env["ADMIN_TOKEN"], "--save-dir", str(tmp_path)]
        options += ["--config", str(tmp_path / "popcorn.yaml")]
        probe = [sys.executable, str(SHARED / "tools" / "popcorn_probe.py"), *options]
        code, failed = "", {}
        for words in COMMANDS:
            asked = [*probe, *(word.format(code=code) for word in words)]
            done = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, check=False)
            if "list-invites" in words:
                code = re.search(r'"code": "([^"]+)"', done.stdout)[1]
            if done.returncode:
                failed[words] = done.stdout + done.stderr
    finally:
        serving.send_signal(signal.SIGTERM)
        serving.wait(timeout=30)
        serving.stdout.close()
        archives.close()

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
