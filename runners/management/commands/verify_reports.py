"""manage.py verify_reports: every stored file against the size and SHA-256 of its row."""

from __future__ import annotations

from typing import Any

from django.core.files.storage import storages
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils.dateparse import parse_datetime
from django.utils.timezone import is_naive, make_aware

from runners.models import Artifact
from runners.stored_files import find_damage, find_orphans

# Nothing is lost: after a restore, what was stored after the dump has no row.
ONLY_EXTRA = 3


class Command(BaseCommand):
    help = (
        "Read every report of the storage and compare it with its row: after a restore, or now and "
        "then. Ends with 1 when a file is missing or is not what was stored. Files that no row names "
        "are listed too; when nothing else is wrong, it ends with 3."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--since",
            help="only what was stored after this time, ISO 8601; then nobody looks for extra files",
        )

    def handle(self, *args: Any, since: str | None, **options: Any) -> None:
        artifacts = Artifact.objects.filter(purged_at__isnull=True).order_by("pk")
        if since is not None:
            after = parse_datetime(since)
            if after is None:
                raise CommandError(f"{since}: this is no time in ISO 8601")
            artifacts = artifacts.filter(
                created_at__gt=make_aware(after) if is_naive(after) else after
            )
        read = damaged = extra = 0
        for artifact in artifacts.iterator(chunk_size=500):
            read += 1
            if wrong := find_damage(artifact):
                damaged += 1
                self.stdout.write(f"{artifact}: {wrong}")
        if since is None:
            for key in find_orphans(storages["reports"]):
                extra += 1
                self.stdout.write(f"{key}: no row names it; find_orphan_files --delete removes it")
        problems = []
        if damaged:
            problems.append(f"{damaged} of {read} files are not what was stored")
        if extra:
            problems.append(f"{extra} files have no row")
        if problems:
            raise CommandError("; ".join(problems), returncode=1 if damaged else ONLY_EXTRA)
        self.stdout.write(f"{read} files are what was stored")
