"""A process of the stack that can be killed, frozen, ended and started again, by its pid alone."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from tests.server.service import ROOT, wait_for

STOP_PATIENCE_S = 30
START_PATIENCE_S = 180


class Part(Protocol):
    """What a storm does to each part of the stack."""

    def kill(self) -> None: ...
    def stop(self) -> None: ...
    def start(self) -> None: ...
    def freeze(self) -> None: ...
    def thaw(self) -> None: ...


class Program:
    """`whole`: its children are killed and frozen with it, as a service manager would."""

    def __init__(
        self,
        argv: list[str],
        *,
        env: dict[str, str],
        log: Path,
        is_up: Callable[[], bool],
        whole: bool = True,
        cwd: Path = ROOT,
    ) -> None:
        self.argv, self.env, self.log = argv, env, log
        self.is_up, self.whole, self.cwd = is_up, whole, cwd

    def start(self) -> None:
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                self.argv,
                cwd=self.cwd,
                env=self.env,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        wait_for(lambda: self.process.poll() is not None or self.is_up(), START_PATIENCE_S)
        assert self.process.poll() is None, f"{self.argv} ended: {self.log.read_text()[-2000:]}"

    def stop(self) -> None:
        """In order, as before an upgrade."""
        self.process.terminate()
        try:
            self.process.wait(STOP_PATIENCE_S)
        except subprocess.TimeoutExpired:
            self.kill()

    def kill(self) -> None:
        self.process.send_signal(signal.SIGSTOP)  # else it has children that nobody counted
        for pid in reversed(self.pids()):
            send(pid, signal.SIGKILL)
        self.process.wait()

    def freeze(self) -> None:
        for pid in self.pids():
            send(pid, signal.SIGSTOP)

    def thaw(self) -> None:
        for pid in self.pids():
            send(pid, signal.SIGCONT)

    def pids(self) -> list[int]:
        return [self.process.pid, *(descendants(self.process.pid) if self.whole else [])]


class Worker:
    """One process of a web server that has several; the server starts another in its place."""

    def __init__(self, web: Program, count: int) -> None:
        self.web, self.count = web, count
        self.pid = 0

    def kill(self) -> None:
        self._signal_next(signal.SIGKILL)

    def stop(self) -> None:
        self._signal_next(signal.SIGTERM)

    def start(self) -> None:
        wait_for(
            lambda: self.pid not in self._workers() and len(self._workers()) == self.count,
            START_PATIENCE_S,
        )

    def freeze(self) -> None:
        self._signal_next(signal.SIGSTOP)

    def thaw(self) -> None:
        send(self.pid, signal.SIGCONT)  # unless it was found unresponsive and replaced

    def _signal_next(self, number: int) -> None:
        self.pid = max(self._workers(), default=0)
        if self.pid:
            send(self.pid, number)

    def _workers(self) -> list[int]:
        """Of the server, that is without the tracker of shared resources that it has too."""
        return [pid for pid in children(self.web.process.pid) if "spawn_main" in command_of(pid)]


def send(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


def children(pid: int) -> list[int]:
    found: list[int] = []
    for task in Path(f"/proc/{pid}/task").glob("*"):
        with contextlib.suppress(OSError):
            found += map(int, (task / "children").read_text().split())
    return found


def descendants(pid: int) -> list[int]:
    return [each for child in children(pid) for each in (child, *descendants(child))]


def command_of(pid: int) -> str:
    """Empty for a process that ended, reaped or not."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    return ""


def processes_of(*places: Path) -> list[str]:
    """What lives and was started with one of these folders in its command or its environment."""
    wanted = [str(place).encode() for place in places]
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        if int(folder.name) == os.getpid():
            continue
        with contextlib.suppress(OSError):
            told = (folder / "cmdline").read_bytes() + (folder / "environ").read_bytes()
            if any(place in told for place in wanted):
                found.append(f"{folder.name}: {command_of(int(folder.name))[:200]}")
    return found
