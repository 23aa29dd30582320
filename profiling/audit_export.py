"""The audit trail as lines for other programs: JSON or CSV, one event after the other."""

from __future__ import annotations

import json
from collections.abc import Iterator

from django.db.models import QuerySet

from leaderboards.models import AuditEvent
from profiling.reports.csv_safe import row

CHUNK_ROWS = 2_000
COLUMNS = (
    "id",
    "created_at",
    "verb",
    "actor",
    "actor_label",
    "subject_kind",
    "subject_id",
    "request_id",
    "address",
    "client_version",
    "data",
)


def json_lines(events: QuerySet[AuditEvent]) -> Iterator[str]:
    """Each with its newline. `actor` is the public id of a person, or null."""
    for event in _each(events):
        yield f"{json.dumps(event, ensure_ascii=False, allow_nan=False)}\n"


def csv_lines(events: QuerySet[AuditEvent]) -> Iterator[str]:
    """With a head; `data` is JSON. What a spreadsheet would take for a formula begins with "'"."""
    yield row(COLUMNS)
    for event in _each(events):
        event["data"] = json.dumps(event["data"], ensure_ascii=False, allow_nan=False)
        yield row(event[name] for name in COLUMNS)


def _each(events: QuerySet[AuditEvent]) -> Iterator[dict[str, object]]:
    """A chunk of rows is in memory at a time."""
    names = ["actor__user_id" if name == "actor" else name for name in COLUMNS]
    for values in events.values_list(*names).iterator(chunk_size=CHUNK_ROWS):
        event = dict(zip(COLUMNS, values, strict=True))
        yield event | {"created_at": event["created_at"].isoformat()}
