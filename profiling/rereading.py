"""Read stored reports again, after the reader has changed; nothing is measured."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

from django.db import transaction
from django.db.models import QuerySet

from leaderboards import audit
from profiling.capture_facts import READER, keep_details, request_verdict, reread_capture
from profiling.models import Capture, ProfileRequest
from profiling.verbs import Verb
from runners.artifacts import open_artifact
from runners.scratch import scratch_folder


@dataclass(frozen=True, slots=True, kw_only=True)
class Reread:
    """What a capture was worth before and after."""

    before: str
    after: str


def captures_to_read(ids: list[UUID]) -> QuerySet[Capture]:
    """Those of these requests; of all requests those that this reader has not read, oldest first."""
    stored = Capture.objects.filter(artifact__isnull=False, artifact__purged_at__isnull=True)
    if ids:
        return stored.filter(request__in=ids).order_by("pk")
    return stored.exclude(details__reader=READER).order_by("pk")


def each_to_read(ids: list[UUID]) -> Iterator[Capture]:
    """One by one, each as it is now: the reading of one takes seconds."""
    for key in list(captures_to_read(ids).values_list("pk", flat=True)):
        found = Capture.objects.select_related("request", "artifact").filter(pk=key).first()
        if found is not None:
            yield found


def reread(capture: Capture) -> Reread:
    """Raises what `open_artifact` raises, and OSError."""
    assert capture.artifact is not None
    with scratch_folder("reports") as folder:
        packed = Path(folder) / "archive.zip"
        with open_artifact(capture.artifact) as stored, packed.open("xb") as out:
            shutil.copyfileobj(stored, out, 2**20)
        facts = reread_capture(capture, packed)
    before = capture.verdict
    with transaction.atomic():
        Capture.objects.filter(pk=capture.pk).update(**facts.columns)
        keep_details(capture, facts.details)
        request = ProfileRequest.objects.select_for_update(no_key=True).get(pk=capture.request_id)
        rows = request.captures.values_list("status", "verdict")
        request.verdict = request_verdict(
            [(status == Capture.Status.FAILED, verdict) for status, verdict in rows]
        )
        request.save(update_fields=["verdict"])
        audit.record(
            Verb.REREAD,
            request,
            actor=None,
            capture=capture.key,
            reader=READER,
            before=before,
            after=facts.columns["verdict"],
        )
    return Reread(before=before, after=facts.columns["verdict"])
