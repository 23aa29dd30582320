"""One web server and one dispatcher as child processes: kept running, ended together."""

from __future__ import annotations

import ctypes
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import FrameType

import httpx
from django.core.management.base import CommandError

BASE_DIR = Path(__file__).resolve().parent.parent
# popcorn-cli polls every 5 s on a kept connection, and a close in between ends its command.
KEEP_ALIVE_S = 75
STOP_GRACE_S = 10
RESTART_PAUSE_S = 1


def web_command(host: str, port: int, processes: int = 1) -> list[str]:
    """The ASGI server as this service needs it, here and in production (`manage.py run_web`)."""
    return [
        sys.executable, "-m", "uvicorn", "kernelbot_site.asgi:application",
        "--host", host, "--port", str(port), "--workers", str(processes),
        "--http", "httptools", "--loop", "uvloop",
        "--timeout-keep-alive", str(KEEP_ALIVE_S), "--timeout-graceful-shutdown", "5",
        "--no-proxy-headers", "--no-access-log", "--log-level", "warning",
    ]  # fmt: skip


def dispatcher_command() -> list[str]:
    return [sys.executable, str(BASE_DIR / "manage.py"), "run_dispatcher"]


def end_with_parent() -> None:
    """A supervisor that was killed must not leave a web server that nobody watches."""
    pr_set_pdeathsig = 1
    ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGTERM)


class Supervisor:
    """Starts both, restarts one that dies, and ends both on SIGTERM, SIGINT or `stop`."""

    def __init__(self, host: str, port: int) -> None:
        self.host, self.port = host, port
        self.address = f"http://{host}:{port}"
        self._commands = {"web": web_command(host, port), "dispatcher": dispatcher_command()}
        self._children: dict[str, subprocess.Popen[bytes]] = {}
        self._stopping = threading.Event()

    def start(self, *, ready_within_s: float = 60) -> None:
        """Start both and wait until the web server answers.

        Raises CommandError when it does not, or when somebody else answers there.
        """
        self._require_free_port()
        try:
            for name in self._commands:
                self._spawn(name)
            self._wait_for_answer(ready_within_s)
        except BaseException:  # Ctrl-C too: they have a session of their own and would stay
            self.stop()
            raise

    def run_until_stopped(self) -> None:
        """Keep both running until a signal asks to end."""
        for signum in (signal.SIGTERM, signal.SIGINT):
            signal.signal(signum, self._ask_to_stop)
        while not self._stopping.wait(RESTART_PAUSE_S):
            for name, child in list(self._children.items()):
                if child.poll() is not None and not self._stopping.is_set():
                    sys.stderr.write(
                        f"the {name} ended with {child.returncode}, starting it again\n"
                    )
                    self._spawn(name)
        self.stop()

    def stop(self) -> None:
        """End both: politely, then surely. Running GPU work is left alone."""
        self._stopping.set()
        for child in self._children.values():
            child.terminate()
        deadline = time.monotonic() + STOP_GRACE_S
        for child in self._children.values():
            try:
                child.wait(max(0.1, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()

    def _require_free_port(self) -> None:
        """Else whoever is there would be taken for our web server."""
        try:
            socket.create_server((self.host, self.port)).close()
        except OSError as error:
            raise CommandError(
                f"cannot listen at {self.address} ({os.strerror(error.errno or 0)}): "
                "end what runs there, or choose another port"
            ) from error

    def _wait_for_answer(self, within_s: float) -> None:
        deadline = time.monotonic() + within_s
        while time.monotonic() < deadline and self._children["web"].poll() is None:
            if self._answers():
                return
            time.sleep(0.1)
        raise CommandError(f"the web server did not begin to answer at {self.address}")

    def _spawn(self, name: str) -> None:
        # An own session: Ctrl-C in the terminal reaches the supervisor alone, which ends them in turn.
        self._children[name] = subprocess.Popen(
            self._commands[name],
            cwd=BASE_DIR,
            env={"PUBLIC_URL": self.address} | os.environ,
            start_new_session=True,
            preexec_fn=end_with_parent if sys.platform == "linux" else None,
        )

    def _answers(self) -> bool:
        try:
            return httpx.get(f"{self.address}/health", timeout=2, trust_env=False).is_success
        except httpx.HTTPError:
            return False

    def _ask_to_stop(self, signum: int, frame: FrameType | None) -> None:
        self._stopping.set()
