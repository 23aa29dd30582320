"""Find a local run's processes from outside, and end them all."""

from __future__ import annotations

import contextlib
import functools
import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")
# The GPU side ends its own family when it is asked; then it is told.
ASK_S = 5.0
KILL_S = 10.0
GONE = frozenset({"Z", "X"})


@dataclass(frozen=True, slots=True)
class Process:
    pid: int
    parent: int
    state: str
    start_time: str  # clock ticks since the machine's start

    @property
    def is_there(self) -> bool:
        return self.state not in GONE


def read_process(pid: int) -> Process | None:
    try:
        # The name in brackets may hold anything, brackets and blanks too.
        fields = (PROC / str(pid) / "stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return None
    return Process(pid=pid, state=fields[0], parent=int(fields[1]), start_time=fields[19])


def recorded_process(pid_file: Path) -> Process | None:
    """The process that wrote the file, if it is there still: never another with its pid."""
    try:
        pid, start_time = pid_file.read_text().split()
    except (OSError, ValueError):
        return None
    process = read_process(int(pid))
    if process is None or process.start_time != start_time or not process.is_there:
        return None
    return process


def end_run(pid_file: Path, workspace: str) -> list[int]:
    """End the GPU side and all that it started; the pids that are still there, hopefully none."""
    if process := recorded_process(pid_file):
        _signal(process.pid, signal.SIGTERM)
        wait_until_gone(pid_file, ASK_S)
    if process := recorded_process(pid_file):
        # It adopts the orphans below it; stopped, it adopts them still and starts nothing more.
        _signal(process.pid, signal.SIGSTOP)
        _kill_all(functools.partial(_descendants, process.pid))
        _signal(process.pid, signal.SIGKILL)
        wait_until_gone(pid_file, KILL_S)
    # Where the GPU side died before its family, only what they have of the workspace tells.
    left = _kill_all(lambda: _users_of(workspace)) if workspace else []
    if process := recorded_process(pid_file):
        left.append(process.pid)
    return left


def _kill_all(find: Callable[[], list[int]]) -> list[int]:
    deadline = time.monotonic() + KILL_S
    while found := find():
        if time.monotonic() > deadline:
            break
        for pid in found:
            _signal(pid, signal.SIGKILL)
        time.sleep(0.01)
    return found


def wait_until_gone(pid_file: Path, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while recorded_process(pid_file) and time.monotonic() < deadline:
        time.sleep(0.02)


def _processes() -> list[Process]:
    pids = [int(entry.name) for entry in PROC.iterdir() if entry.name.isdigit()]
    return [process for pid in pids if (process := read_process(pid)) and process.is_there]


def _descendants(ancestor: int) -> list[int]:
    children: dict[int, list[int]] = {}
    for process in _processes():
        children.setdefault(process.parent, []).append(process.pid)
    found: list[int] = []
    waiting = [ancestor]
    while waiting:
        below = children.get(waiting.pop(), [])
        found += below
        waiting += below
    return found


def _users_of(workspace: str) -> list[int]:
    """Processes whose folder or first environment lies in the workspace."""
    mark = workspace.encode()
    return [process.pid for process in _processes() if _mentions(process.pid, workspace, mark)]


def _mentions(pid: int, workspace: str, mark: bytes) -> bool:
    with contextlib.suppress(OSError):
        cwd = os.readlink(PROC / str(pid) / "cwd")
        if cwd.startswith(workspace + "/"):
            return True
        return mark + b"/" in (PROC / str(pid) / "environ").read_bytes()
    return False


def _signal(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)
