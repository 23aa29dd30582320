"""Stored reports are read again by command."""

from __future__ import annotations

from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from leaderboards.models import AuditEvent
from profiling.evidence import details_of
from profiling.models import Capture, CaptureDetails, ProfileRequest
from runners.gpu.contract import FailureKind
from tests.profiling.envelopes import (
    a_failure,
    a_record,
)


def capture_of(request) -> Capture:
    return Capture.objects.select_related("request", "artifact").get(request=request)


def test_reports_of_an_earlier_reader_are_read_again(measure, alice):
    old, new = measure(alice), measure(alice)
    CaptureDetails.objects.filter(capture__request=old).update(reader="0", content=b"", schema=0)
    Capture.objects.filter(request=old).update(verdict="", kernels=[], verdict_reasons=[])
    ProfileRequest.objects.filter(pk=old.pk).update(verdict="")
    out = StringIO()

    call_command("reread_reports", stdout=out)

    assert out.getvalue() == f"{old.pk} profile.0: complete, was none\n"
    old.refresh_from_db()
    capture = capture_of(old)
    assert (old.verdict, capture.verdict, len(capture.kernels)) == ("complete", "complete", 1)
    assert details_of(capture).launches[0].name == "rowsum_kernel"
    event = AuditEvent.objects.get(verb="profile.reread")
    assert (event.subject_id, event.data["after"]) == (str(old.pk), "complete")
    assert details_of(capture_of(new)) is not None


def test_a_failure_of_the_reader_is_decided_anew_and_others_stay(measure, alice):
    unread = measure(alice)
    Capture.objects.filter(request=unread).update(
        status="failed", failure_kind="report_unreadable", verdict="unreadable"
    )
    crashed = measure(
        alice,
        record=a_record("profile.0.zip", failure=a_failure(FailureKind.EVALUATOR_CRASHED).failure),
    )

    call_command("reread_reports", str(unread.pk), str(crashed.pk), stdout=StringIO())

    assert (capture_of(unread).status, capture_of(unread).verdict) == ("captured", "complete")
    again = capture_of(crashed)
    assert (again.status, again.failure_kind, again.verdict) == (
        "failed",
        "evaluator_crashed",
        "partial",
    )


def test_nothing_is_read_on_a_dry_run_and_a_limit_holds(measure, alice):
    requests = [measure(alice) for _ in range(3)]
    ids = [str(request.pk) for request in requests]
    dry, limited = StringIO(), StringIO()

    call_command("reread_reports", *ids, dry_run=True, stdout=dry)
    call_command("reread_reports", *ids, limit=2, stdout=limited)

    assert dry.getvalue() == "3 captures would be read again\n"
    assert len(limited.getvalue().splitlines()) == 2
    assert AuditEvent.objects.filter(verb="profile.reread").count() == 2


def test_a_lost_archive_and_a_wrong_id_are_told(measure, alice):
    request = measure(alice)
    capture = capture_of(request)
    capture.artifact.file.storage.delete(capture.artifact.file.name)
    errors = StringIO()

    with pytest.raises(CommandError, match="1 of 1"):
        call_command("reread_reports", str(request.pk), stderr=errors)
    with pytest.raises(CommandError, match="not the id"):
        call_command("reread_reports", "7")

    assert "no longer in the storage" in errors.getvalue()
    assert capture_of(request).verdict == "complete"
