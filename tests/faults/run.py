"""One run: load and storm together, then recovery, then the checks."""

from __future__ import annotations

import json
import os
import platform
import random
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.faults.checks import check_all, check_blame
from tests.faults.clients import Client
from tests.faults.ledger import Ledger
from tests.faults.program import processes_of
from tests.faults.stack import PEOPLE, Stack
from tests.faults.storm import Storm

# A request may be in its fifth attempt when the storm is over.
RECOVERY_S = 240.0
# A download that its dispatcher did not survive: the next one removes it when it is a day old.
UNFINISHED = ".part"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    violations: list[str]
    summary: dict[str, Any]


def run(folder: Path, *, seed: int, seconds: float, clients: int) -> Outcome:
    """Everything that it starts has ended afterwards. `folder` must be empty."""
    ledger = Ledger(folder / "log.jsonl")
    place = folder / "stack"
    place.mkdir()
    stack = Stack(place)
    try:
        storm = Storm(stack, ledger, random.Random(seed))
        _storm_under_load(stack, ledger, storm, seed, seconds, clients)
        storm_over = time.monotonic()
        for sentence in _wait_for_calm(stack, storm_over + RECOVERY_S):
            ledger.violate(sentence)
        calm_after_s = round(time.monotonic() - storm_over, 1)
        stack.end_service()
        for sentence in (*check_all(stack, ledger), *check_blame(ledger), *_left_behind(stack)):
            ledger.violate(sentence)
        attempts = Counter(r["attempt"] for r in stack.rows("SELECT attempt FROM runners_job"))
        failures = Counter(
            r["failure_kind"]
            for r in stack.rows("SELECT failure_kind FROM runners_job WHERE failure_kind <> ''")
        )
    finally:
        stack.close()
    for process in processes_of(place, stack.postgres.folder):
        ledger.violate(f"still alive: {process}")
    summary = summarise(ledger, storm) | {
        "seed": seed,
        "seconds": seconds,
        "clients": clients,
        "processors": os.cpu_count(),
        "python": platform.python_version(),
        "calm_after_s": calm_after_s,
        "jobs_by_attempts": dict(sorted(attempts.items())),
        "failures": dict(failures),
        "unfinished_downloads": len(list(place.glob(f"data/modal-spool/*{UNFINISHED}"))),
        "violations": ledger.violations,
    }
    ledger.close()
    (folder / "summary.json").write_text(json.dumps(summary, indent=1) + "\n")
    return Outcome(violations=ledger.violations, summary=summary)


def _storm_under_load(
    stack: Stack, ledger: Ledger, storm: Storm, seed: int, seconds: float, clients: int
) -> None:
    until = time.monotonic() + seconds
    load = []
    for number in range(clients):
        person = PEOPLE[number % len(PEOPLE)]
        http = stack.nginx.client(stack.cli_ids[person])
        rng = random.Random(f"{seed}/{number}")
        load.append(Client(person, http, ledger, rng, until=until, deadline=until + RECOVERY_S))
    for each in load:
        each.start()
    storm.rage(seconds)
    for each in load:
        each.join()


def _wait_for_calm(stack: Stack, deadline: float) -> Iterator[str]:
    """No job in flight, nothing to be ended, no call at the provider."""
    while time.monotonic() < deadline:
        busy = stack.rows("SELECT 1 FROM runners_job WHERE finished_at IS NULL OR stop_due")
        if not busy and all(call["output"] for call in stack.modal.calls()):
            return
        time.sleep(0.5)
    yield f"no calm within {RECOVERY_S:g} s after the storm"


def _left_behind(stack: Stack) -> Iterator[str]:
    """Web and dispatchers have ended in order by now."""
    for folder in (stack.tmp, stack.folder / "data/modal-spool"):
        for path in folder.iterdir():
            if path.suffix != UNFINISHED:
                yield f"a temporary file was left: {path.relative_to(stack.folder)}"
    for container in (stack.modal.state_dir / "containers").iterdir():
        for process in processes_of(container):
            yield f"a container still runs: {process}"


def summarise(ledger: Ledger, storm: Storm) -> dict[str, Any]:
    faults: dict[str, Counter[str]] = {}
    for fault in storm.faults:
        faults.setdefault(fault.part, Counter())[fault.kind] += 1
    orders: dict[str, dict[str, int]] = {}
    for (mode, outcome), count in sorted(ledger.orders.items()):
        orders.setdefault(mode, {})[outcome] = count
    longest = max(storm.faults, key=lambda fault: fault.recovery_s, default=None)
    waited = [item.ended_after_s for item in ledger.accepted]
    return {
        "faults": {part: dict(kinds) for part, kinds in sorted(faults.items())},
        "faults_in_all": len(storm.faults),
        "orders": orders,
        "accepted": len(ledger.accepted),
        "streams_taken_up": sum(item.taken_up for item in ledger.accepted),
        "answers": {f"{m} {status}": n for (m, status), n in sorted(ledger.answers.items())},
        "longest_recovery": longest
        and {
            "part": longest.part,
            "kind": longest.kind,
            "seconds": longest.recovery_s,
        },
        "longest_wait_of_a_request_s": max(waited, default=0),
    }
