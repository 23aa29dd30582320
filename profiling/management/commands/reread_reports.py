"""Read stored reports again, after the reader has changed."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.core.management.base import BaseCommand, CommandError, CommandParser

from profiling.rereading import captures_to_read, each_to_read, reread
from runners.exceptions import ServiceError


class Command(BaseCommand):
    help = (
        "Read the reports of profile requests again from their stored archives: verdicts, "
        "summaries and details are made anew, nothing is measured. Without an ID, all reports that "
        "another version of the reader has read. Ends with 1 when one of them could not be opened."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("ids", nargs="*", metavar="ID", help="the id of a profile request")
        parser.add_argument("--dry-run", action="store_true", help="only say how many there are")
        parser.add_argument("--limit", type=int, metavar="N", help="read N captures at most")

    def handle(self, *, ids: list[str], dry_run: bool, limit: int | None, **options: Any) -> None:
        keys = [_key(given) for given in ids]
        if dry_run:
            self.stdout.write(f"{captures_to_read(keys).count()} captures would be read again")
            return
        failed = done = 0
        for capture in each_to_read(keys):
            if limit is not None and done + failed >= limit:
                break
            name = f"{capture.request_id} {capture.key}"
            try:
                found = reread(capture)
            except (ServiceError, OSError) as error:
                self.stderr.write(f"{name}: {error}")
                failed += 1
            else:
                changed = "" if found.before == found.after else f", was {found.before or 'none'}"
                self.stdout.write(f"{name}: {found.after}{changed}")
                done += 1
        if failed:
            raise CommandError(f"{failed} of {done + failed} could not be read again")


def _key(given: str) -> UUID:
    try:
        return UUID(given)
    except ValueError as error:
        raise CommandError(f"{given}: this is not the id of a request") from error
