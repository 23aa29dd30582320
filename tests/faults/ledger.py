"""What the clients saw, for comparison with the rows."""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any


@dataclass(kw_only=True)
class Accepted:
    """A request that was answered with 200 or 202, and how it ended as its client was told.

    `id` is that of a profile request, or the number of a submission. `outcome` is a status of the
    job's (profiles) or of the wire's (submissions), or "deleted". `archives`: key to SHA-256.
    """

    mode: str
    id: str
    person: str
    at: float = field(default_factory=time.time)
    outcome: str = ""
    said: str = ""
    ended_after_s: float = 0
    archives: dict[str, str] = field(default_factory=dict)
    taken_up: int = 0


class Ledger:
    """Shared by all clients; every entry is also a line of the log."""

    def __init__(self, log: Path) -> None:
        self._lock = threading.Lock()
        self._log = log.open("a")
        self.accepted: list[Accepted] = []
        self.violations: list[str] = []
        # Of orders alone: (mode, what became of it).
        self.orders: Counter[tuple[str, str]] = Counter()
        # Of every answer: (method, status), where an attempt without an answer has status 0.
        self.answers: Counter[tuple[str, int]] = Counter()

    def note(self, what: str, **more: Any) -> None:
        with self._lock:
            self._log.write(json.dumps({"at": round(time.time(), 3), "what": what} | more) + "\n")
            self._log.flush()

    def accept(self, item: Accepted) -> Accepted:
        with self._lock:
            self.accepted.append(item)
        return item

    def finish(self, item: Accepted, outcome: str, said: str = "") -> None:
        item.outcome, item.said = outcome, said
        item.ended_after_s = round(time.time() - item.at, 2)
        self.order(item.mode, outcome)
        self.note("finished", **asdict(item))

    def order(self, mode: str, outcome: str) -> None:
        with self._lock:
            self.orders[mode, outcome] += 1

    def answer(self, method: str, path: str, status: int) -> None:
        with self._lock:
            self.answers[method, status] += 1
        if status in (0, *range(500, 600)):
            self.note("no answer" if status == 0 else "answer", path=path, status=status)

    def violate(self, what: str) -> None:
        with self._lock:
            self.violations.append(what)
        self.note("VIOLATION", text=what)

    def close(self) -> None:
        self._log.close()
