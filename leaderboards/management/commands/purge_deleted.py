from __future__ import annotations

from argparse import ArgumentParser
from datetime import timedelta
from typing import Any

from django.core.management.base import BaseCommand

from leaderboards.deletion import purge_deleted

GRACE_DAYS = 30.0


class Command(BaseCommand):
    help = "Remove the source and the files of submissions that were deleted a while ago."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--days", type=float, default=GRACE_DAYS, help=f"the grace, {GRACE_DAYS:g} by default"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        purged = purge_deleted(grace=timedelta(days=options["days"]))
        self.stdout.write(f"sources: {purged.sources}, files: {purged.files}")
