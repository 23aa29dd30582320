"""On PostgreSQL the database itself refuses to change the record, whoever has a connection."""

from __future__ import annotations

import pytest
from django.core.management import CommandError, call_command
from django.db import DatabaseError, connection, transaction

from leaderboards.models import AuditEvent
from profiling.models import Review
from runners.models import JobEvent
from tests.conftest import APPEND_ONLY_TABLES
from tests.profiling.orders import submit

pytestmark = [pytest.mark.services, pytest.mark.django_db]


@pytest.fixture(autouse=True)
def _on_postgres(db):
    if connection.vendor != "postgresql":
        pytest.skip("DATABASE_URL is no PostgreSQL")


@pytest.fixture
def rows(alice, rowsum):
    """At least one row in every table."""
    request = submit(alice)
    Review.objects.create(request=request, reviewer=alice, decision="reviewed")
    return request


def run(statement: str) -> None:
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(statement)


@pytest.mark.parametrize("table", APPEND_ONLY_TABLES)
@pytest.mark.parametrize(
    "change", ["UPDATE {} SET id = id", "DELETE FROM {}", "TRUNCATE {} CASCADE"]
)
def test_raw_changes_are_refused_by_the_database(rows, table, change):
    run("SET CONSTRAINTS ALL IMMEDIATE")  # what waits for the end would refuse TRUNCATE as well

    with pytest.raises(DatabaseError, match=f"{table} is append-only"):
        run(change.format(table))

    with connection.cursor() as cursor:
        cursor.execute(f"SELECT count(*) FROM {table}")
        assert cursor.fetchone()[0] >= 1


@pytest.mark.parametrize("table", ["leaderboards_popcornuser", "runners_job"])
def test_a_table_that_takes_the_record_with_it_is_not_emptied_either(rows, table):
    run("SET CONSTRAINTS ALL IMMEDIATE")

    with pytest.raises(DatabaseError, match="is append-only: TRUNCATE is refused"):
        run(f"TRUNCATE {table} CASCADE")


def test_flush_is_refused(rows):
    run("SET CONSTRAINTS ALL IMMEDIATE")

    with pytest.raises(CommandError) as refused, transaction.atomic():
        call_command("flush", interactive=False)

    assert "append-only" in str(refused.value.__cause__)
    assert AuditEvent.objects.exists()


def test_rows_are_still_added(rows, alice):
    before = AuditEvent.objects.count(), JobEvent.objects.count()

    submit(alice)

    assert AuditEvent.objects.count() > before[0]
    assert JobEvent.objects.count() > before[1]


def test_the_protection_can_be_taken_back_and_made_again(rows):
    run("SET CONSTRAINTS ALL IMMEDIATE")

    call_command("migrate", "runners", "0002", verbosity=0)  # with all that depend on it
    run("UPDATE runners_jobevent SET reason = 'changed'")
    call_command("migrate", verbosity=0)

    with pytest.raises(DatabaseError, match="append-only"):
        run("UPDATE runners_jobevent SET reason = 'again'")
    with pytest.raises(DatabaseError, match="append-only"):
        run("TRUNCATE runners_jobevent CASCADE")
