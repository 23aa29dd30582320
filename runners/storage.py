"""Local report files that are either whole or not there, also after a power cut."""

from __future__ import annotations

import os
from pathlib import Path
from uuid import uuid4

from django.core.files import File
from django.core.files.storage import FileSystemStorage

PIECE_BYTES = 2**20
# Names of unfinished files begin so; find_orphan_files knows them by it.
UNFINISHED = ".unfinished-"


class DurableFileStorage(FileSystemStorage):
    """Writes under a temporary name, syncs, renames. A file of that name is replaced."""

    def get_available_name(self, name: str, max_length: int | None = None) -> str:
        """Keys hold job and attempt, so nobody else's file is in the way: artifacts.py."""
        return name

    def _save(self, name: str, content: File[bytes]) -> str:
        target = Path(self.path(name))
        target.parent.mkdir(parents=True, exist_ok=True)
        unfinished = target.with_name(f"{UNFINISHED}{uuid4().hex}")
        try:
            with unfinished.open("xb") as out:
                for piece in content.chunks(PIECE_BYTES):
                    out.write(piece)
                out.flush()
                os.fsync(out.fileno())
            unfinished.replace(target)
        finally:
            unfinished.unlink(missing_ok=True)
        _sync_folders(target.parent, Path(self.location))
        return name


def _sync_folders(folder: Path, root: Path) -> None:
    """The new names as well, up to the root: a folder made just now is only a name, too."""
    for each in (folder, *folder.parents):
        descriptor = os.open(each, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        if each == root:
            return
