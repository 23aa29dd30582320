"""A client that fetches the same files over many connections at once."""

from __future__ import annotations

from collections import Counter

from leaderboards.models import AuditEvent
from profiling.verbs import Verb
from tests.leaderboards.at_once import run_at_once
from tests.runners.processes import migrated_file, shared_database  # noqa: F401  fixtures

PREPARE = """
from leaderboards.audit import NO_REQUEST
from leaderboards.models import PopcornUser
from profiling.models import Capture
from profiling.trail import record_download

capture = Capture.objects.select_related("request").get(artifact__isnull=False)
alice = PopcornUser.objects.get(username="alice")
"""
DOWNLOAD = """
for name in sys.argv[1:]:
    record_download(capture.request, capture, name, actor=alice, context=NO_REQUEST)
"""


def test_of_downloads_of_a_file_at_once_one_is_recorded(
    shared_database,  # noqa: F811
    captured,
    tmp_path,
):
    files = [f"file-{number}" for number in range(30)]

    run_at_once(PREPARE, DOWNLOAD, database=shared_database, folder=tmp_path, arguments=[files] * 3)

    rows = AuditEvent.objects.filter(verb=Verb.DOWNLOADED)
    assert Counter(row.data["file"] for row in rows) == dict.fromkeys(files, 1)
