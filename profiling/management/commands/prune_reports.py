"""Remove old report files; rows, verdicts and everything that was read of them stay."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from profiling.pruning import artifacts_to_prune, prune_artifact
from runners.artifacts import StorageUnavailable


class Command(BaseCommand):
    help = (
        "Remove the files of reports that are too old, and the oldest while all together are too "
        "large. Only says which, unless --really is given. What was read of them stays, downloads "
        "are answered with 410, each is an audit event. Ends with 1 when a file could not go."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--days", type=float, metavar="N", help="keep what is younger")
        parser.add_argument("--max-gib", type=float, metavar="N", help="keep so much at most")
        parser.add_argument("--really", action="store_true", help="remove them")

    def handle(
        self, *, days: float | None, max_gib: float | None, really: bool, **options: Any
    ) -> None:
        if days is None and max_gib is None:
            raise CommandError("say what is kept: --days, --max-gib or both")
        if (days or 0) < 0 or (max_gib or 0) < 0:
            raise CommandError("--days and --max-gib are not negative")
        before = None if days is None else timezone.now() - timedelta(days=days)
        max_bytes = None if max_gib is None else int(max_gib * 2**30)
        count = size = failed = 0
        for artifact in artifacts_to_prune(before=before, max_bytes=max_bytes):
            if really:
                try:
                    prune_artifact(artifact)
                except StorageUnavailable as error:
                    self.stderr.write(f"{artifact}: {error}")
                    failed += 1
                    continue
            count, size = count + 1, size + artifact.size
            self.stdout.write(f"{artifact} {artifact.size} {artifact.created_at:%Y-%m-%d}")
        what = "removed" if really else "would be removed; --really removes them"
        self.stderr.write(f"{count} files of {size} bytes {what}")
        if failed:
            raise CommandError(f"{failed} files could not be removed")
