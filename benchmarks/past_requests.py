"""What a profile request costs as the number of past requests grows (docs/performance.md).

    DATABASE_URL=postgres://… python -m benchmarks.past_requests

A service as in benchmarks.load, on PostgreSQL and a database of its own; past requests are copied by SQL from
a real one, with its job, submission and capture, all of them of the person who asks. Prints JSON: the
latency at each number, and how its p50 grew from the first to the last.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import signal
import tempfile
from pathlib import Path
from typing import Any

import psycopg

from benchmarks.load import latency, take
from benchmarks.processes import Production
from tests import environment  # noqa: F401  what settings.py reads, before it is read

KEY = "(lpad(to_hex({number}), 12, '0') || '70008000000000000000')::uuid"
NUMBER = "1000000000 + {number}"
# What differs from the row that is copied. Rows of foreign keys are right by construction.
CHANGED = {
    "runners_job": {"id": KEY, "external_id": "'past-' || {number}"},
    "leaderboards_submission": {"id": NUMBER},
    "profiling_profilerequest": {"id": KEY, "job_id": KEY, "submission_id": NUMBER},
    "profiling_capture": {"id": NUMBER, "request_id": KEY},
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.past_requests")
    parser.add_argument("--sizes", type=int, nargs="+", default=[10_000, 1_000_000])
    parser.add_argument("--requests", type=int, default=100)
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with tempfile.TemporaryDirectory(prefix="past-requests-") as folder:
        told = asyncio.run(measure(Path(folder), options.sizes, options.requests))
    print(json.dumps(told, indent=2))


async def measure(folder: Path, sizes: list[int], requests: int) -> dict[str, Any]:
    service = Production(folder, processes=1)
    if service.env["DATABASE_URL"].startswith("sqlite"):
        raise SystemExit("DATABASE_URL must name a PostgreSQL server")
    told: dict[str, Any] = {}
    try:
        service.prepare()
        service.start_web()
        service.start_dispatcher()
        await take(service.target, 4)  # every import has been used
        filled = 0
        for size in sizes:
            await asyncio.to_thread(fill, service.env["DATABASE_URL"], filled, size)
            filled = size
            told[str(size)] = await latency(service.target, requests)
    finally:
        service.stop_all()
    first, last = (told[str(size)]["p50_ms"] for size in (sizes[0], sizes[-1]))
    return told | {"growth": round(last / first, 2)}


def fill(url: str, filled: int, size: int) -> None:
    """Past requests number `filled` to `size`."""
    with psycopg.connect(url, autocommit=True) as database:
        # Checking the key of each row would take minutes.
        database.execute("SET session_replication_role = replica")
        for table, changed in CHANGED.items():
            asked = f"SELECT * FROM {table} ORDER BY id DESC LIMIT 1"
            columns = [each.name for each in database.execute(asked).description or ()]
            values = ", ".join(
                changed.get(name, f'made."{name}"').format(number="n") for name in columns
            )
            names = ", ".join(f'"{name}"' for name in columns)
            database.execute(
                f"INSERT INTO {table} ({names}) SELECT {values} "
                f"FROM ({asked}) made, generate_series({filled + 1}, {size}) n"
            )
        database.execute("VACUUM ANALYZE")


if __name__ == "__main__":
    main()
