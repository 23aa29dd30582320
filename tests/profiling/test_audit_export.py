"""The audit trail as JSON lines and CSV."""

from __future__ import annotations

import csv
import io
import json
import tracemalloc
from datetime import timedelta
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from leaderboards import audit
from leaderboards.audit import RequestContext
from leaderboards.models import AuditEvent
from profiling.actions import rerun_request
from profiling.models import ProfileRequest
from tests.profiling.orders import submit


def export(*options: str) -> str:
    out = io.StringIO()
    call_command("export_audit", *options, stdout=out)
    return out.getvalue()


@pytest.fixture
def measured(alice, rowsum) -> ProfileRequest:
    request = submit(alice)
    rerun_request(request, actor=None, origin=ProfileRequest.Origin.COMMAND)
    return request


def test_json_lines_hold_every_event_whole(measured):
    events = [json.loads(line) for line in export().splitlines()]

    assert [event["id"] for event in events] == list(
        AuditEvent.objects.order_by("pk").values_list("pk", flat=True)
    )
    asked = next(event for event in events if event["verb"] == "profile.rerun_asked")
    row = AuditEvent.objects.get(pk=asked["id"])
    assert asked == {
        "id": row.pk,
        "created_at": row.created_at.isoformat(),
        "verb": "profile.rerun_asked",
        "actor": None,
        "actor_label": "system",
        "subject_kind": "profilerequest",
        "subject_id": str(measured.pk),
        "request_id": "",
        "address": None,
        "client_version": "",
        "data": row.data,
    }
    assert "id-alice" in {event["actor"] for event in events}


def test_one_subject_and_a_span_of_time_can_be_chosen(measured, alice):
    now = timezone.now()
    for days in (3, 2, 1):
        AuditEvent.objects.create(
            created_at=now - timedelta(days=days),
            verb=f"days.{days}",
            subject_kind="user",
            subject_id="1",
        )
    since, until = (f"{now - timedelta(days=days):%Y-%m-%dT%H:%M:%SZ}" for days in (2.5, 0.5))

    chosen = [
        json.loads(line) for line in export(f"--since={since}", f"--until={until}").splitlines()
    ]
    of_request = export(f"--subject={measured.pk}").splitlines()

    assert [event["verb"] for event in chosen] == ["days.2", "days.1"]
    assert {json.loads(line)["subject_id"] for line in of_request} == {str(measured.pk)}
    with pytest.raises(CommandError, match="a date or a time"):
        export("--since=soon")


def test_csv_can_be_read_back_and_starts_no_formula(alice):
    context = RequestContext(client_version="=HYPERLINK(1)")
    audit.record("x", alice, actor=alice, context=context, said='a "quoted", word\n=1')

    (row,) = csv.DictReader(io.StringIO(export("--format=csv")))

    assert row["client_version"] == "'=HYPERLINK(1)"
    assert json.loads(row["data"]) == {"said": 'a "quoted", word\n=1'}
    assert (row["actor"], row["actor_label"], row["address"]) == (
        "id-alice",
        "alice (id-alice)",
        "",
    )


def test_a_long_trail_is_written_piece_by_piece(db, tmp_path: Path):
    rows = [
        AuditEvent(verb="x", subject_kind="user", subject_id="1", data={"said": "y" * 1_000})
        for _ in range(12_000)
    ]
    AuditEvent.objects.bulk_create(rows, batch_size=2_000)
    del rows
    tracemalloc.start()

    with (tmp_path / "trail.jsonl").open("w") as out:
        call_command("export_audit", stdout=out)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    written = (tmp_path / "trail.jsonl").stat().st_size
    assert written > 12_000_000
    assert peak < written / 2
