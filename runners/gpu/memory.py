"""The memory of a program's whole family, held below a limit.

At its own limit a provider kills the whole container and runs it again; so what a submission uses
up must end before, and as an ordinary result. A limit on address space, which the kernel would
hold by itself, is of no use here: a GPU's driver reserves more of it than a machine has memory.
"""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import time

from runners.gpu.family import PROC, descendants

LOOK_EVERY_S = 0.2
PAGE_BYTES = resource.getpagesize()


class MemoryWatch:
    """Kills the largest process of the family while together they hold more than the limit.

    The largest only, so that a profiler that ran it still saves what it has.
    """

    def __init__(self, limit_bytes: int | None, outsiders: frozenset[int]) -> None:
        self.rang = False
        self._limit_bytes = limit_bytes
        self._outsiders = outsiders
        self._look_at = 0.0

    def look(self) -> None:
        """To be called often; it looks every `LOOK_EVERY_S`."""
        if self._limit_bytes is None or time.monotonic() < self._look_at:
            return
        self._look_at = time.monotonic() + LOOK_EVERY_S
        resident = {pid: _resident_bytes(pid) for pid in descendants(os.getpid(), self._outsiders)}
        if sum(resident.values()) > self._limit_bytes:
            self.rang = True
            with contextlib.suppress(ProcessLookupError):
                os.kill(max(resident, key=resident.__getitem__), signal.SIGKILL)


def _resident_bytes(pid: int) -> int:
    try:
        return int((PROC / str(pid) / "statm").read_bytes().split()[1]) * PAGE_BYTES
    except OSError:  # it is gone meanwhile
        return 0
