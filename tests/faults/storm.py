"""Faults at random, by a seed: parts are killed, frozen and restarted, two at once at most."""

from __future__ import annotations

import random
import threading
import time
from dataclasses import dataclass

from tests.faults.ledger import Ledger
from tests.faults.stack import DISPATCHERS, LEASE_S, Stack

# Seconds between faults, and how long one lasts.
GAP_S = (1.0, 5.0)
LASTS_S = (0.5, 8.0)
AT_ONCE = 2
READY_PATIENCE_S = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """`recovery_s`: from its end to the first readiness through nginx, other faults included."""

    part: str
    kind: str
    seconds: float
    recovery_s: float


class Storm:
    def __init__(self, stack: Stack, ledger: Ledger, rng: random.Random) -> None:
        self.stack, self.ledger, self.rng = stack, ledger, rng
        self.faults: list[Fault] = []
        self._struck: set[str] = set()
        self._threads: list[threading.Thread] = []
        self._room = threading.Semaphore(AT_ONCE)

    def rage(self, seconds: float) -> None:
        """Returns when every fault is over, and all parts run."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            time.sleep(self.rng.uniform(*GAP_S))
            part = self.rng.choice(sorted(self.stack.parts))
            kind = self.rng.choice(self.stack.kinds[part])
            lasts = self.rng.uniform(*LASTS_S)
            if part in DISPATCHERS and kind == "frozen":
                lasts += self.rng.choice((0, LEASE_S))  # beyond its lease every other time
            if not self._may_strike(part):
                continue
            self._room.acquire()
            thread = threading.Thread(target=self._strike, args=(part, kind, lasts))
            self._threads.append(thread)
            thread.start()
        for thread in self._threads:
            thread.join()

    def _may_strike(self, part: str) -> bool:
        """Not a part that is down, nor a worker of a server that is; and not again before the
        service was ready, else nobody is served where processes are slow to start."""
        kin = {"web", "web worker"} if part in ("web", "web worker") else {part}
        if kin & self._struck:
            return False
        self._struck.add(part)
        return True

    def _strike(self, part: str, kind: str, seconds: float) -> None:
        struck = self.stack.parts[part]
        self.ledger.note("fault begins", part=part, kind=kind, seconds=round(seconds, 1))
        try:
            if kind == "frozen":
                struck.freeze()
                time.sleep(seconds)
                struck.thaw()
            else:
                struck.kill() if kind == "killed" else struck.stop()
                time.sleep(seconds if kind == "killed" else 0)
                struck.start()
            self.ledger.note("fault ends", part=part, kind=kind)
        except Exception as error:  # noqa: BLE001  whatever it is, the storm goes on
            self.ledger.violate(f"{part} did not come back after it was {kind}: {error!r}")
        finally:
            self._room.release()
        recovery_s = self._until_ready(part)
        self.faults.append(Fault(part=part, kind=kind, seconds=seconds, recovery_s=recovery_s))
        self._struck.discard(part)

    def _until_ready(self, part: str) -> float:
        began = time.monotonic()
        while not self.stack.is_ready():
            if time.monotonic() - began > READY_PATIENCE_S:
                self.ledger.violate(f"not ready {READY_PATIENCE_S} s after the fault of {part}")
                break
            time.sleep(0.2)
        return round(time.monotonic() - began, 2)
