from __future__ import annotations

import pytest
from django.db import IntegrityError

from leaderboards.models import AuditEvent, Leaderboard, SubmissionSource
from runners.models import AppendOnlyError


def test_a_task_definition_survives_the_database_in_its_own_order(rowsum):
    board = Leaderboard.objects.get(name="rowsum")

    assert list(board.current_revision.definition.benchmarks[2].items()) == [
        ("size", 1024),
        ("seed", 4),
    ]


def test_a_task_revision_is_never_changed(rowsum):
    revision = rowsum.current_revision
    revision.commit = "f" * 40

    with pytest.raises(AppendOnlyError):
        revision.save()
    with pytest.raises(AppendOnlyError):
        type(revision).objects.update(commit="f" * 40)
    with pytest.raises(AppendOnlyError):
        revision.delete()


def test_an_audit_row_is_never_changed_or_deleted(alice):
    row = AuditEvent.objects.create(verb="x", actor=alice, subject_kind="user", subject_id="1")

    for change in (row.save, row.delete, AuditEvent.objects.all().delete):
        with pytest.raises(AppendOnlyError):
            change()
    with pytest.raises(AppendOnlyError):
        AuditEvent.objects.filter(pk=row.pk).update(verb="y")


@pytest.mark.parametrize("name", ["Rowsum", "row sum", "admin", "", "a/b", "row\n"])
def test_the_database_refuses_names_that_the_cli_could_not_send(db, make_leaderboard, name):
    with pytest.raises(IntegrityError):
        make_leaderboard(name)


def test_equal_source_is_stored_once(db):
    first = SubmissionSource.keep(b"x = 1\n")

    assert SubmissionSource.keep(b"x = 1\n") == first
    assert SubmissionSource.objects.count() == 1
