"""Hear at once that a job changed, where the database can tell it: PostgreSQL, by LISTEN and NOTIFY.

A trigger of the table rings, so that no writer can forget to. Nobody depends on it: whoever hears it
looks by itself from time to time too, as SQLite has no bell and a connection can be away.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from functools import partial
from typing import Any
from uuid import UUID

import psycopg
from django.db import connection, migrations

logger = logging.getLogger(__name__)

CHANNEL = "kernelbot_jobs"
AGAIN_S = 5.0
# A connection that was lost without a word is found out in about a minute.
KEEPALIVE = {"keepalives_idle": 30, "keepalives_interval": 10, "keepalives_count": 3}
_MAKE = f"""
CREATE FUNCTION kernelbot_ring() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_notify('{CHANNEL}', NEW.id::text);
    RETURN NULL;
END
$$;
CREATE TRIGGER runners_job_bell AFTER INSERT OR UPDATE OF status, phase ON runners_job
    FOR EACH ROW EXECUTE FUNCTION kernelbot_ring()
"""
_REMOVE = "DROP TRIGGER runners_job_bell ON runners_job; DROP FUNCTION kernelbot_ring()"


def hanging_the_bell() -> migrations.RunPython:
    """The trigger on PostgreSQL; notifications reach listeners when the transaction commits."""
    return migrations.RunPython(partial(_run, _MAKE), partial(_run, _REMOVE))


async def hear(on_change: Callable[[UUID | None], None]) -> None:
    """Call with the id of each job that changes, until cancelled; with None where any may have.

    Returns at once where there is no bell. PgBouncer gives nobody a connection to wait on.
    """
    is_pooled = connection.settings_dict["DISABLE_SERVER_SIDE_CURSORS"]
    if connection.vendor != "postgresql" or is_pooled:
        return
    while True:
        try:
            await _listen(on_change)
        except Exception as error:  # noqa: BLE001  the regular looks go on, whatever it is
            logger.warning("the bell is not heard for %s s: %s", AGAIN_S, error)
        await asyncio.sleep(AGAIN_S)


async def _listen(on_change: Callable[[UUID | None], None]) -> None:
    params = connection.get_connection_params() | KEEPALIVE
    del params["cursor_factory"]  # Django's is for code that blocks
    async with await psycopg.AsyncConnection.connect(**params, autocommit=True) as line:
        await line.execute(f"LISTEN {CHANNEL}")
        on_change(None)
        async for notice in line.notifies():
            on_change(UUID(notice.payload))


def _run(statements: str, apps: Any, schema_editor: Any) -> None:
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute(statements, params=None)
