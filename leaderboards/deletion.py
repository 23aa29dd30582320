"""Deleting submissions: hidden at once, work that runs is cancelled, contents go after a grace.

The rows stay as tombstones: submission, jobs, runs and audit trail (architecture.md, Deletes).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Unpack

from django.db import transaction
from django.utils import timezone

from leaderboards import audit
from leaderboards.audit import By
from leaderboards.models import Submission, SubmissionSource
from leaderboards.standings import settle_standing_of
from leaderboards.verbs import SubmissionVerb
from runners.artifacts import StorageUnavailable, purge_artifact
from runners.exceptions import LostRace
from runners.gpu.contract import Mode
from runners.models import Job
from runners.states import JobStatus
from runners.transitions import move

log = logging.getLogger(__name__)
type JobFinder = Callable[[Submission], Iterable[Job]]
type Forgetter = Callable[[Job], None]
DELETED_REASON = "the submission was deleted"
_CANCEL_TRIES = 5
_finders: list[JobFinder] = []
_forgetters: list[Forgetter] = []


def register_jobs(find: JobFinder) -> None:
    """Further jobs of a submission, which the app above has given it; called in its `ready`."""
    _finders.append(find)


def register_forgetting(forget: Forgetter) -> None:
    """What the app above keeps of a job's files goes with them; called in its `ready`."""
    _forgetters.append(forget)


def jobs_of(submission: Submission) -> list[Job]:
    """Every job that ran or will run this submission."""
    found = {of.job.pk: of.job for of in submission.passes.select_related("job")}
    for find in _finders:
        found |= {job.pk: job for job in find(submission)}
    return list(found.values())


@transaction.atomic
def delete_submission(submission: Submission, **by: Unpack[By]) -> None:
    """Hide it everywhere and cancel what runs of it. Deleting it twice is harmless."""
    # Locked: a job that ends at this moment waits, and then queues no secret pass.
    locked = Submission.objects.select_for_update(no_key=True).get(pk=submission.pk)
    if locked.deleted_at is not None:
        return
    locked.deleted_at = timezone.now()
    locked.save(update_fields=["deleted_at"])
    recorded = audit.record(SubmissionVerb.DELETED, locked, **by)
    for job in jobs_of(locked):
        _cancel(job, recorded.actor_label)
    if locked.mode == Mode.LEADERBOARD:
        settle_standing_of(locked)


def _cancel(job: Job, actor_label: str) -> None:
    for _ in range(_CANCEL_TRIES):
        if job.is_final:
            return
        try:
            move(job, JobStatus.CANCELLED, actor_label=actor_label, reason=DELETED_REASON)
        except LostRace:
            job.refresh_from_db()  # a dispatcher moved it meanwhile
    if not job.is_final:
        raise LostRace(f"{job} moves faster than it can be cancelled")


@dataclass(frozen=True, slots=True)
class Purged:
    sources: int
    files: int


def purge_deleted(*, grace: timedelta, now: datetime | None = None) -> Purged:
    """Remove source and files of what was deleted longer than `grace` ago; repeatable.

    A source goes when nobody's standing submission has the same content.
    """
    before = (now or timezone.now()) - grace
    deleted = Submission.objects.filter(deleted_at__lt=before)
    sources = SubmissionSource.objects.filter(purged_at__isnull=True, submissions__in=deleted)
    purged = sum(
        _purge_source(sha256, before) for sha256 in set(sources.values_list("pk", flat=True))
    )
    files = 0
    for submission in deleted.iterator():
        files += _purge_files(jobs_of(submission))
    return Purged(purged, files)


@transaction.atomic
def _purge_source(sha256: str, before: datetime) -> bool:
    # Locked against a submission that brings the same content just now.
    source = SubmissionSource.objects.select_for_update(no_key=True).get(pk=sha256)
    if source.submissions.exclude(deleted_at__lt=before).exists():
        return False
    source.content, source.purged_at = b"", timezone.now()
    source.save(update_fields=["content", "purged_at"])
    for submission in source.submissions.all():
        audit.record(SubmissionVerb.PURGED, submission, actor=None, source_sha256=sha256)
    return True


def _purge_files(jobs: list[Job]) -> int:
    files = 0
    for job in jobs:
        if not job.is_final:
            continue  # being cancelled; the next purge finds it
        for artifact in job.artifacts.filter(purged_at__isnull=True):
            try:
                purge_artifact(artifact)
                files += 1
            except StorageUnavailable:
                log.exception("%s stays until the next purge", artifact)
        for forget in _forgetters:
            forget(job)
    return files
