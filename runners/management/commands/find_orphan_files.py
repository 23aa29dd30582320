"""manage.py find_orphan_files [--delete]: report files that no row names (FR-32)."""

from __future__ import annotations

from typing import Any

from django.core.files.storage import storages
from django.core.management.base import BaseCommand, CommandParser

from runners.stored_files import find_orphans


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
