"""Find and end everything that a program started, whatever it did to get away."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import time
from pathlib import Path

PR_SET_CHILD_SUBREAPER = 36
# Killing is a matter of milliseconds; a process that a driver holds may take longer.
KILL_S = 15.0
PROC = Path("/proc")

LIBC = ctypes.CDLL(None, use_errno=True)


class SurvivorsError(RuntimeError):
    """Processes of a program are still there after they were killed."""


def become_reaper() -> None:
    """From now on orphans below this process become its children, and can be found."""
    if LIBC.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "this process can't become a reaper of orphans")


def children_of(parent: int) -> frozenset[int]:
    return frozenset(pid for pid, its_parent in _parents().items() if its_parent == parent)


def end_family(child: subprocess.Popen[bytes], outsiders: frozenset[int]) -> None:
    """Kill all descendants of this process but the `outsiders`, and see that they are gone."""
    deadline = time.monotonic() + KILL_S
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, signal.SIGKILL)
    while family := descendants(os.getpid(), outsiders):
        if time.monotonic() > deadline:
            raise SurvivorsError(f"{len(family)} processes can't be ended: {sorted(family)[:10]}")
        for pid in family:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.002)
        _reap(child, family)
    child.wait()


def _reap(child: subprocess.Popen[bytes], family: set[int]) -> None:
    child.poll()
    for pid in family - {child.pid}:
        with contextlib.suppress(ChildProcessError):
            os.waitpid(pid, os.WNOHANG)


def descendants(ancestor: int, outsiders: frozenset[int]) -> set[int]:
    children: dict[int, list[int]] = {}
    for pid, parent in _parents().items():
        children.setdefault(parent, []).append(pid)
    found: set[int] = set()
    waiting = [ancestor]
    while waiting:
        for pid in children.get(waiting.pop(), ()):
            if pid not in outsiders and pid not in found:
                found.add(pid)
                waiting.append(pid)
    return found


def _parents() -> dict[int, int]:
    """Each process that /proc shows, with its parent."""
    parents = {}
    for entry in PROC.iterdir():
        if not entry.name.isdigit():
            continue
        with contextlib.suppress(OSError):  # it is gone meanwhile
            # The name in brackets may hold anything, brackets and blanks too.
            fields = (entry / "stat").read_bytes().rpartition(b")")[2].split()
            parents[int(entry.name)] = int(fields[1])
    return parents
