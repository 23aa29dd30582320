"""Append-only tables where the database can hold to it: PostgreSQL refuses UPDATE, DELETE
and TRUNCATE.

Models refuse them through the ORM (`runners.models.AppendOnly`); triggers refuse them to whoever
has a connection, too. The owner of a table can still drop its triggers, which no slip does.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from django.db import migrations

_FUNCTION = "kernelbot_append_only"
_MAKE_FUNCTION = f"""
CREATE FUNCTION {_FUNCTION}() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% is append-only: % is refused', TG_TABLE_NAME, TG_OP
        USING ERRCODE = 'insufficient_privilege';
END
$$
"""
_DROP_FUNCTION = f"DROP FUNCTION {_FUNCTION}()"


def making_the_function() -> migrations.RunPython:
    """Before any table is protected; migrations of the apps above depend on it."""
    return migrations.RunPython(partial(_run, _MAKE_FUNCTION), partial(_run, _DROP_FUNCTION))


def protecting(table: str) -> migrations.RunPython:
    """Statements are refused, not rows: one that finds no row is an error as well."""
    make = (
        f"CREATE TRIGGER {table}_append_only BEFORE UPDATE OR DELETE ON {table} "
        f"FOR EACH STATEMENT EXECUTE FUNCTION {_FUNCTION}()"
    )
    drop = f"DROP TRIGGER {table}_append_only ON {table}"
    return migrations.RunPython(partial(_run, make), partial(_run, drop))


def refusing_truncate(table: str) -> migrations.RunPython:
    make = (
        f"CREATE TRIGGER {table}_no_truncate BEFORE TRUNCATE ON {table} "
        f"FOR EACH STATEMENT EXECUTE FUNCTION {_FUNCTION}()"
    )
    drop = f"DROP TRIGGER {table}_no_truncate ON {table}"
    return migrations.RunPython(partial(_run, make), partial(_run, drop))


def _run(statement: str, apps: Any, schema_editor: Any) -> None:
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute(statement, params=None)
