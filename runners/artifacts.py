"""Files of jobs in the `reports` storage: stored once, never replaced by other content.

A key is job, attempt and name, so two jobs cannot meet; the row is written last, so a row always
has its file, and a file without a row is somebody's crash (find_orphan_files).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from django.core.files import File
from django.core.files.storage import Storage, storages
from django.utils import timezone

from runners.exceptions import ServiceError
from runners.models import Artifact, Job

PIECE_BYTES = 2**20


class StorageUnavailable(ServiceError):
    """The storage does not answer; the file itself may be all right."""

    code = "storage_unavailable"
    http_status = 503


class ArtifactGone(ServiceError):
    """The storage answers and has no such file: it was purged, or lost."""

    code = "file_gone"
    http_status = 410


class ArtifactConflict(Exception):
    """A stored artifact has other content than what is to be stored under its name."""


def artifact_key(job: Job, name: str) -> str:
    return f"{job.pk}/{job.attempt}/{name}"


def store_artifact(
    job: Job, name: str, path: Path, *, size: int, sha256: str, content_type: str
) -> Artifact:
    """Stream a file to the storage and write its row; calling it again is harmless.

    What lies under the key already counts only if size and sha256 match. Raises
    StorageUnavailable, and ArtifactConflict where a row with other content exists.
    """
    stored = Artifact.objects.filter(job=job, attempt=job.attempt, name=name).first()
    if stored is None:
        key, storage = artifact_key(job, name), storages["reports"]
        with _storage_errors():
            if not _holds(storage, key, size, sha256):
                _replace(storage, key, path)
        stored, _ = Artifact.objects.get_or_create(
            job=job,
            attempt=job.attempt,
            name=name,
            defaults={"file": key, "size": size, "sha256": sha256, "content_type": content_type},
        )
    if (stored.size, stored.sha256) != (size, sha256):
        raise ArtifactConflict(f"{stored} was stored with other content")
    return stored


def open_artifact(artifact: Artifact) -> File[bytes]:
    """The stored file for reading; the caller closes it.

    Raises StorageUnavailable (503) or ArtifactGone (410).
    """
    if artifact.purged_at is not None:
        raise ArtifactGone("This file was removed.")
    with _storage_errors():
        opened: File[Any] = storages["reports"].open(str(artifact.file.name), "rb")
        return opened


def signed_url(artifact: Artifact, name: str, seconds: int) -> str | None:
    """Where the storage itself gives the file to whoever has this address, for so long.

    `name` is what it will be called on somebody's disk. None where the storage cannot sign. Raises
    StorageUnavailable or ArtifactGone, the latter only where the file was purged.
    """
    sign = getattr(storages["reports"], "signed_url", None)
    if sign is None:
        return None
    if artifact.purged_at is not None:
        raise ArtifactGone("This file was removed.")
    with _storage_errors():
        url: str = sign(str(artifact.file.name), name, artifact.content_type, seconds)
        return url


def purge_artifact(artifact: Artifact) -> None:
    """Remove the file and keep the row; harmless to repeat. Raises StorageUnavailable."""
    with _storage_errors():
        storages["reports"].delete(str(artifact.file.name))
    artifact.purged_at = timezone.now()
    artifact.save(update_fields=["purged_at"])


@contextmanager
def _storage_errors() -> Iterator[None]:
    try:
        yield
    except FileNotFoundError as error:
        raise ArtifactGone("This file is no longer in the storage.") from error
    except (OSError, *getattr(storages["reports"], "outages", ())) as error:
        raise StorageUnavailable(
            "The storage of reports does not answer; try again later.", retry_after=30
        ) from error


def _holds(storage: Storage, key: str, size: int, sha256: str) -> bool:
    """Whether this very content is there; it is read, since not every storage keeps digests."""
    if not storage.exists(key) or storage.size(key) != size:
        return False
    digest = hashlib.sha256()
    with storage.open(key, "rb") as stored:
        for piece in stored.chunks(PIECE_BYTES):
            digest.update(piece)
    return digest.hexdigest() == sha256


def _replace(storage: Storage, key: str, path: Path) -> None:
    with path.open("rb") as source:
        saved = storage.save(key, File(source))
    if saved != key:  # a storage that invents names when one is taken
        storage.delete(saved)
        raise OSError(f"the storage keeps {key} under another name")
