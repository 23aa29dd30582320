"""manage.py find_orphan_files [--delete]: report files that no row names (FR-32)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from uuid import UUID

from django.core.files.storage import Storage, storages
from django.core.management.base import BaseCommand, CommandParser

from runners.models import Artifact, Job


class Command(BaseCommand):
    help = (
        "List files in the storage of reports that belong to no artifact: a dispatcher was killed "
        "between storing a file and writing its row. Files of jobs that still run are left out."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--delete", action="store_true", help="remove them")

    def handle(self, *args: Any, delete: bool, **options: Any) -> None:
        storage, found = storages["reports"], 0
        for key in find_orphans(storage):
            found += 1
            self.stdout.write(key)
            if delete:
                storage.delete(key)
        what = "deleted" if delete else "found; --delete removes them"
        self.stderr.write(f"{found} files without a row {what}")


def find_orphans(storage: Storage) -> Iterator[str]:
    """Keys without a row. Only folders that look like a job's are looked into."""
    folders, _ = storage.listdir("")
    for folder in folders:
        try:
            job_id = UUID(folder)
        except ValueError:
            continue
        if Job.objects.active().filter(pk=job_id).exists():
            continue  # its file may have been stored just now, and its row is on the way
        named = set(Artifact.objects.filter(job=job_id).values_list("file", flat=True))
        yield from (key for key in _files(storage, folder) if key not in named)


def _files(storage: Storage, folder: str) -> Iterator[str]:
    folders, files = storage.listdir(folder)
    yield from (f"{folder}/{name}" for name in files)
    for each in folders:
        yield from _files(storage, f"{folder}/{each}")
