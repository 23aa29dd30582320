"""What the lists of requests cost as they grow (docs/performance.md).

    DATABASE_URL=postgres://… python -m benchmarks.request_lists

Needs an empty PostgreSQL database and a superuser of it, and leaves it full: first 10,000 requests with
jobs, submissions and two captures each, then 1,000,000. In both, 100 rows have each rare value,
evenly spread, and some values none has. Every choice of every filter is taken from the pages
themselves. Prints JSON: milliseconds of CPU of the cheapest of seven answers through all of Django but
the network, queries, rows shown, and how the time grew. CPU, of both processes, since a machine with
other work on it makes clocks useless; so the database must be on this machine, and it is told to
use no parallel workers. At the small size a filter may show fewer rows than at the large one;
`growth` is then against the first page of that list.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path

import django

from tests import environment  # noqa: F401  what settings.py reads, before it is read

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "kernelbot_site.settings")
django.setup()

from django.core.management import call_command  # noqa: E402
from django.db import connection, models  # noqa: E402
from django.test import Client  # noqa: E402
from django.test.utils import CaptureQueriesContext, setup_test_environment  # noqa: E402
from django.utils import timezone  # noqa: E402

from leaderboards.models import Leaderboard, PopcornUser, Submission  # noqa: E402
from profiling.models import Capture, ProfileRequest  # noqa: E402
from runners.models import Job  # noqa: E402
from tests.conftest import make_person  # noqa: E402
from tests.profiling.orders import submit  # noqa: E402
from tests.server.seed import make_board  # noqa: E402

SIZES = 10_000, 1_000_000
RARE = 100
TIMES = 7
# A key that sorts by its time, as UUIDv7 does; n counts from the newest.
_KEY = "(lpad(to_hex(10000000 - n), 12, '0') || '70008000000000000000')::uuid"
Ask = Callable[[str], dict[str, float]]


def main() -> None:
    if connection.vendor != "postgresql":
        raise SystemExit("DATABASE_URL must name a PostgreSQL database")
    setup_test_environment()
    call_command("migrate", verbosity=0)
    rows = Rows()
    measured = {}
    for size in SIZES:
        rows.fill(size)
        measured[size] = measure_all(rows)
    print(json.dumps(compare(measured), indent=2))


class Rows:
    """100 people and 3 boards that ask often, one of each that rarely does, one that never did."""

    def __init__(self) -> None:
        for name in [*(f"board{index}" for index in range(3)), "rare-board", "empty-board"]:
            make_board(name, gpu_types=["B200", "H100"])
        self.people = [make_person(f"person{index}") for index in range(100)]
        self.rarely, self.never = make_person("rarely"), make_person("never")
        self.operator = make_person("operator", is_staff=True, is_superuser=True)
        self.made = submit(self.people[0], leaderboard_name="board0")
        ends = timezone.now()
        self.capture = Capture.objects.create(
            request=self.made,
            benchmark_index=0,
            spec="size: 1024; seed: 7",
            status="failed",
            failure_kind="ncu_failed",
            started_at=ends,
            finished_at=ends,
            extract="DRAM Throughput                 %        81.37\n" * 20,
            verdict="missing",
        )

    def fill(self, size: int) -> None:
        """Leaves exactly `size` requests."""
        kept: list[models.Model | None] = [
            self.capture,
            self.made,
            self.made.submission,
            self.made.job,
        ]
        with connection.cursor() as cursor:
            # Keys of foreign rows are right by construction; checking each would take minutes.
            cursor.execute("SET session_replication_role = replica")
            for row in filter(None, kept):
                cursor.execute(f"DELETE FROM {row._meta.db_table} WHERE id <> '{row.pk}'")
        self._copy(Job, self.made.job_id, size, self._job(size))
        self._copy(Submission, self.made.submission_id, size, self._submission(size))
        self._copy(ProfileRequest, self.made.pk, size, self._request(size))
        for index in (0, 1):
            self._copy(Capture, self.capture.pk, size, self._capture(size, index))
        with connection.cursor() as cursor:
            cursor.execute("SET session_replication_role = origin")
            cursor.execute("SET max_parallel_workers_per_gather = 0")
            cursor.execute("VACUUM ANALYZE")

    def _copy(
        self, model: type[models.Model], pk: object, size: int, changed: dict[str, str]
    ) -> None:
        """`size` - 1 rows like the given one; `n` counts them from the newest."""
        columns = [str(field.column) for field in model._meta.concrete_fields]
        values = ", ".join(changed.get(column, f"made.{column}") for column in columns)
        table = model._meta.db_table
        with connection.cursor() as cursor:
            cursor.execute(
                f"INSERT INTO {table} ({', '.join(columns)}) SELECT {values} "
                f"FROM {table} made, generate_series(1, {size - 1}) n WHERE made.id = '{pk}'"
            )

    def _owner(self, size: int) -> str:
        keys = ", ".join(str(person.pk) for person in self.people)
        return f"CASE WHEN {_rare(size, 11)} THEN {self.rarely.pk} ELSE ({_of(keys, 100)}) END"

    def _board(self, size: int, column: str) -> str:
        boards = list(Leaderboard.objects.order_by("pk"))
        often = ", ".join(f"'{getattr(board, column)}'" for board in boards[:3])
        kind = Leaderboard._meta.get_field(column).db_type(connection)
        chosen = f"CASE WHEN {_rare(size, 13)} THEN '{getattr(boards[3], column)}' ELSE "
        return f"({chosen} ({_of(often, 3)}) END)::{_stored(kind)}"

    def _gpu(self, size: int) -> str:
        return f"CASE WHEN {_rare(size, 17)} THEN 'H100' ELSE 'B200' END"

    def _job(self, size: int) -> dict[str, str]:
        status = (
            f"CASE WHEN n <= 20 THEN 'queued' WHEN {_rare(size, 19)} THEN 'timed_out' "
            "WHEN n % 20 = 7 THEN 'failed' ELSE 'succeeded' END"
        )
        failure = f"CASE WHEN n > 20 AND ({_rare(size, 19)} OR n % 20 = 7) THEN 'x' ELSE '' END"
        return {
            "id": _KEY,
            "status": status,
            "gpu": self._gpu(size),
            "created_at": _at("created_at"),
            "queued_at": _at("created_at"),
            "finished_at": f"CASE WHEN n <= 20 THEN NULL ELSE {_at('created_at')} END",
            "failure_kind": failure,
        }

    def _submission(self, size: int) -> dict[str, str]:
        return {
            "id": "1000000000 - n",
            "user_id": self._owner(size),
            "leaderboard_id": self._board(size, "id"),
            "gpu": self._gpu(size),
            "created_at": _at("created_at"),
        }

    def _request(self, size: int) -> dict[str, str]:
        refused = "n % 50 = 21"

        def accepted(value: str, otherwise: str) -> str:
            return f"CASE WHEN {refused} THEN {otherwise} ELSE {value} END"

        verdict = (
            f"CASE WHEN n <= 20 OR n % 20 = 7 THEN '' WHEN {_rare(size, 23)} THEN 'partial' "
            "WHEN n % 10 = 3 THEN 'degraded' ELSE 'complete' END"
        )
        return {
            "id": _KEY,
            "created_at": _at("created_at"),
            "user_id": self._owner(size),
            "leaderboard_name": self._board(size, "name"),
            "leaderboard_id": accepted(self._board(size, "id"), "NULL"),
            "revision_id": accepted("made.revision_id", "NULL"),
            "submission_id": accepted("1000000000 - n", "NULL"),
            "job_id": accepted(_KEY, "NULL"),
            "gpu": self._gpu(size),
            "refusal_status": accepted("NULL::smallint", "400"),
            "refusal_code": accepted("''", "'invalid'"),
            "refusal_reason": accepted("''", "'there is no such benchmark'"),
            "verdict": accepted(verdict, "''"),
            "review_decision": (
                f"CASE WHEN {_rare(size, 29)} THEN 'rejected' WHEN n % 40 = 9 THEN 'reviewed' "
                "ELSE '' END"
            ),
            "result_origin": f"CASE WHEN {_rare(size, 31)} THEN 'recorded' ELSE '' END",
            "origin": f"CASE WHEN {_rare(size, 37)} THEN 'brev' ELSE 'cli' END",
        }

    def _capture(self, size: int, index: int) -> dict[str, str]:
        return {
            "id": f"1000000000 - 2 * n + {index}",
            "request_id": _KEY,
            "benchmark_index": str(index),
            "failure_kind": f"CASE WHEN {_rare(size, 41)} THEN 'ncu_missing' ELSE 'ncu_failed' END",
            "verdict": f"CASE WHEN {_rare(size, 43)} THEN 'empty' ELSE 'missing' END",
            "passed": f"CASE WHEN {_rare(size, 47)} THEN false ELSE true END",
        }


def _rare(size: int, place: int) -> str:
    return f"n % {size // RARE} = {place}"


def _of(values: str, count: int) -> str:
    """One of these, by turns that go with no other column."""
    return f"(ARRAY[{values}])[1 + (n / 7) % {count}]"


def _at(column: str) -> str:
    return f"made.{column} - n * interval '1 minute'"


def _stored(kind: str | None) -> str:
    """The type of a column without what makes its values."""
    return (kind or "text").split(" GENERATED")[0]


def measure_all(rows: Rows) -> dict[str, dict[str, float]]:
    operator = Client()
    operator.force_login(rows.operator)
    found = {}
    for name in ("profiling/profilerequest", "profiling/capture", "runners/job"):
        place = f"/operators/{name}/"
        for address in [place, f"{place}?p=2", f"{place}?p=100", *filters(operator, place)]:
            found[address] = measure(operator, address, _shown_in_admin)
    place = "/operators/profiling/profilerequest/"
    key = ProfileRequest.objects.latest("created_at").pk
    for term in (key, rows.people[3].username, "rarely", "never", "0" * 64):
        address = f"{place}?q={term}"
        found[address] = measure(operator, address, _shown_in_admin)
    for who, people in (
        ("operator", rows.operator),
        ("often", rows.people[3]),
        ("rarely", rows.rarely),
    ):
        found |= measure_api(who, people, operator if who == "operator" else None)
    return found


def filters(operator: Client, place: str) -> list[str]:
    """The address of every choice that the page offers."""
    lists = operator.get(place).context["cl"]
    choices = (choice for spec in lists.filter_specs for choice in spec.choices(lists))
    offered = dict.fromkeys(place + choice["query_string"] for choice in choices)
    return [address for address in offered if not address.endswith("?")]


def measure_api(who: str, person: PopcornUser, site: Client | None) -> dict[str, dict[str, float]]:
    client = site or Client(headers={"X-Popcorn-Cli-Id": f"{person.username}-cli-id"})
    place = "/api/profile-requests/"
    found = {}
    for query in ["", *(f"?verdict={verdict}" for verdict in ProfileRequest.Verdict.values)]:
        found[f"{place}{query} ({who})"] = measure(client, place + query, _shown_in_api)
    following = client.get(place).json()["next"]
    found[f"{place} second page ({who})"] = measure(client, following, _shown_in_api)
    return found


def _shown_in_admin(answer: object) -> int:
    return len(answer.context["cl"].result_list)  # type: ignore[attr-defined]


def _shown_in_api(answer: object) -> int:
    return len(answer.json()["results"])  # type: ignore[attr-defined]


def measure(client: Client, address: str, shown: Callable[[object], int]) -> dict[str, float]:
    """Milliseconds of the cheapest answer, queries and rows shown."""
    took = []
    for _ in range(TIMES):
        started = cpu_ms()
        answer = client.get(address)
        took.append(cpu_ms() - started)
        assert answer.status_code == 200, (address, answer.content)
    with CaptureQueriesContext(connection) as queries:
        client.get(address)
    return {"ms": round(min(took), 1), "queries": len(queries), "rows": shown(answer)}


def cpu_ms() -> float:
    """Of this process and of its connection's process in the database."""
    pid = connection.connection.info.backend_pid
    database_ns = Path(f"/proc/{pid}/schedstat").read_text().split()[0]
    return time.process_time() * 1000 + int(database_ns) / 1e6


def compare(measured: dict[int, dict[str, dict[str, float]]]) -> dict[str, object]:
    before, after = (measured[size] for size in SIZES)
    compared: dict[str, object] = {}
    for address, last in after.items():
        first = before.get(address)
        plain = before[_plain(address)]
        base = first if first and first["rows"] >= last["rows"] else plain
        compared[address] = {
            str(SIZES[0]): first,
            str(SIZES[1]): last,
            "growth": round(last["ms"] / base["ms"], 2),
        }
    return compared


def _plain(address: str) -> str:
    """The first page of the same list for the same person."""
    place = address.partition("?")[0].partition(" ")[0]
    return place + (address[address.rindex(" (") :] if place.startswith("/api") else "")


if __name__ == "__main__":
    main()
