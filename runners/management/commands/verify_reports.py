"""manage.py verify_reports: every stored file against the size and SHA-256 of its row."""

from __future__ import annotations

import hashlib
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils.dateparse import parse_datetime
from django.utils.timezone import is_naive, make_aware

from runners.models import Artifact

PIECE_BYTES = 2**20


class Command(BaseCommand):
    help = (
        "Read every report of the storage and compare it with its row: after a restore, or now and "
        "then. Ends with 1 when a file is missing or is not what was stored."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--since", help="only what was stored after this time, ISO 8601")

    def handle(self, *args: Any, since: str | None, **options: Any) -> None:
        artifacts = Artifact.objects.filter(purged_at__isnull=True).order_by("pk")
        if since is not None:
            after = parse_datetime(since)
            if after is None:
                raise CommandError(f"{since}: this is no time in ISO 8601")
            artifacts = artifacts.filter(
                created_at__gt=make_aware(after) if is_naive(after) else after
            )
        read = damaged = 0
        for artifact in artifacts.iterator(chunk_size=500):
            read += 1
            if wrong := find_damage(artifact):
                damaged += 1
                self.stdout.write(f"{artifact}: {wrong}")
        if damaged:
            raise CommandError(f"{damaged} of {read} files are not what was stored")
        self.stdout.write(f"{read} files are what was stored")


def find_damage(artifact: Artifact) -> str:
    """What is wrong with the stored file, empty when nothing is."""
    digest, size = hashlib.sha256(), 0
    try:
        with artifact.file.open("rb") as stored:
            while piece := stored.read(PIECE_BYTES):
                digest.update(piece)
                size += len(piece)
    except FileNotFoundError:
        return "it is missing"
    if size != artifact.size:
        return f"it has {size} bytes in place of {artifact.size}"
    if digest.hexdigest() != artifact.sha256:
        return "its content is another"
    return ""
