"""What lies in the storage of reports against what the rows say."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from uuid import UUID

from django.core.files.storage import Storage

from runners.artifacts import ArtifactGone, StorageUnavailable, open_artifact
from runners.models import Artifact, Job

PIECE_BYTES = 2**20


def find_damage(artifact: Artifact) -> str:
    """What is wrong with the stored file, empty when nothing is; all of it is read."""
    digest, size = hashlib.sha256(), 0
    try:
        with open_artifact(artifact) as stored:
            while piece := stored.read(PIECE_BYTES):
                digest.update(piece)
                size += len(piece)
    except ArtifactGone:
        return "it is missing"
    except (StorageUnavailable, OSError) as error:
        return f"it cannot be read: {error}"
    if size != artifact.size:
        return f"it has {size} bytes in place of {artifact.size}"
    if digest.hexdigest() != artifact.sha256:
        return "its content is another"
    return ""


def find_orphans(storage: Storage) -> Iterator[str]:
    """Keys without a row, and those whose row says that the file was removed.

    Only folders that look like a job's are looked into.
    """
    folders, _ = storage.listdir("")
    for folder in folders:
        try:
            job_id = UUID(folder)
        except ValueError:
            continue
        if Job.objects.active().filter(pk=job_id).exists():
            continue  # its file may have been stored just now, and its row is on the way
        kept = Artifact.objects.filter(job=job_id, purged_at__isnull=True)
        named = set(kept.values_list("file", flat=True))
        yield from (key for key in _files(storage, folder) if key not in named)


def _files(storage: Storage, folder: str) -> Iterator[str]:
    folders, files = storage.listdir(folder)
    yield from (f"{folder}/{name}" for name in files)
    for each in folders:
        yield from _files(storage, f"{folder}/{each}")
