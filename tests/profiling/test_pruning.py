"""Files of reports go by age and size; what was read of them, rows and trail stay."""

from __future__ import annotations

from datetime import timedelta
from io import StringIO

import pytest
from django.core.files.storage import storages
from django.core.management import CommandError, call_command
from django.utils import timezone

from leaderboards.models import AuditEvent
from profiling.evidence import details_of
from profiling.models import Capture
from runners.models import Artifact
from tests.profiling.evidence import finish

ALICE = {"X-Popcorn-Cli-Id": "alice-cli-id"}


@pytest.fixture
def aged(measure, alice):
    """Finished requests, stored 30, 20 and 10 days ago."""
    made = []
    for days in (30, 20, 10):
        request = measure(alice)
        finish(request.job)
        stored = timezone.now() - timedelta(days=days)
        Artifact.objects.filter(job=request.job).update(created_at=stored)
        made.append(request)
    return made


def capture_of(request) -> Capture:
    return Capture.objects.select_related("request", "artifact").get(request=request)


def prune(**options) -> list[str]:
    out = StringIO()
    call_command("prune_reports", stdout=out, stderr=StringIO(), **options)
    return [line.split()[0] for line in out.getvalue().splitlines()]


def key_of(request) -> str:
    return capture_of(request).artifact.file.name


def purged(requests) -> list[bool]:
    return [capture_of(request).artifact.purged_at is not None for request in requests]


def test_nothing_is_removed_unless_it_is_really_asked_for(aged):
    assert prune(days=15) == [key_of(aged[0]), key_of(aged[1])]

    assert purged(aged) == [False, False, False]
    assert all(storages["reports"].exists(key_of(request)) for request in aged)
    assert not AuditEvent.objects.filter(verb="profile.pruned").exists()


def test_old_files_go_and_the_facts_of_their_captures_stay(aged, client):
    old, _, young = aged

    prune(days=25, really=True)

    assert purged(aged) == [True, False, False]
    assert not storages["reports"].exists(key_of(old))
    capture = capture_of(old)
    assert (capture.verdict, len(capture.kernels)) == ("complete", 1)
    assert details_of(capture).launches[0].name == "rowsum_kernel"
    event = AuditEvent.objects.get(verb="profile.pruned")
    assert (event.subject_id, event.actor_label) == (str(old.pk), "system")
    assert (event.data["file"], event.data["size"], event.data["sha256"]) == (
        key_of(old),
        capture.artifact.size,
        capture.artifact.sha256,
    )
    path = "/api/profile-requests/{}/captures/0/archive/"
    assert client.get(path.format(old.pk), headers=ALICE).status_code == 410
    assert client.head(path.format(young.pk), headers=ALICE).status_code == 200


def test_the_oldest_go_until_the_rest_is_small_enough(aged):
    size = capture_of(aged[0]).artifact.size
    assert size > 0

    prune(max_gib=(size * 1.5) / 2**30, really=True)

    assert purged(aged) == [True, True, False]


def test_files_of_jobs_that_still_run_stay(measure, alice):
    running = measure(alice)

    assert prune(max_gib=0.0, really=True) == []

    assert purged([running]) == [False]


def test_a_storage_that_is_away_leaves_row_and_trail_as_they_were(aged, settings, tmp_path):
    (tmp_path / "file").write_text("where a folder should be")
    settings.STORAGES = settings.STORAGES | {
        "reports": {
            "BACKEND": "runners.storage.DurableFileStorage",
            "OPTIONS": {"location": tmp_path / "file", "base_url": None},
        }
    }

    with pytest.raises(CommandError, match="1 files could not be removed"):
        prune(days=25, really=True)

    assert purged(aged) == [False, False, False]
    assert not AuditEvent.objects.filter(verb="profile.pruned").exists()


def test_it_wants_to_be_told_what_is_kept(db):
    with pytest.raises(CommandError, match="say what is kept"):
        prune(really=True)
