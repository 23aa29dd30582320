"""Retention: files of reports go by age and total size, what was read of them stays."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from django.db import transaction
from django.db.models import QuerySet, Sum

from leaderboards import audit
from profiling.models import ProfileRequest
from profiling.verbs import Verb
from runners.artifacts import purge_artifact
from runners.models import Artifact
from runners.states import FINAL


def stored_artifacts() -> QuerySet[Artifact]:
    """Those whose file is still there, of jobs that have ended, oldest first."""
    return Artifact.objects.filter(purged_at__isnull=True, job__status__in=FINAL).order_by(
        "created_at", "pk"
    )


def artifacts_to_prune(*, before: datetime | None, max_bytes: int | None) -> Iterator[Artifact]:
    """What was stored before that time, and then the oldest until `max_bytes` are kept at most."""
    excess = 0
    if max_bytes is not None:
        kept = Artifact.objects.filter(purged_at__isnull=True)
        excess = (kept.aggregate(total=Sum("size"))["total"] or 0) - max_bytes
    for artifact in stored_artifacts().iterator(chunk_size=500):
        too_old = before is not None and artifact.created_at < before
        if not too_old and excess <= 0:
            return
        excess -= artifact.size
        yield artifact


@transaction.atomic
def prune_artifact(artifact: Artifact) -> None:
    """Remove the file, keep its row and the facts of its capture. Raises StorageUnavailable.

    Killed in between, the file is gone and the row says nothing of it: the next time repeats it.
    """
    of = ProfileRequest.objects.filter(job=artifact.job_id).only("pk").first()
    audit.record(
        Verb.PRUNED,
        of or artifact,
        actor=None,
        file=str(artifact.file.name),
        size=artifact.size,
        sha256=artifact.sha256,
    )
    purge_artifact(artifact)
