"""Measure requests again, each as a new request that is linked to the old one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from uuid import UUID

from django.core.management.base import BaseCommand, CommandError, CommandParser

from profiling.actions import rerun_request
from profiling.management.times import read_time
from profiling.models import Capture, ProfileRequest
from profiling.rerunning import requests_to_rerun
from runners.exceptions import ServiceError

_VERDICTS = sorted({*ProfileRequest.Verdict.values, *Capture.Verdict.values})
_FILTERS = ("ncu_version", "gpu", "verdict", "since")


class Command(BaseCommand):
    help = (
        "Measure profile requests again: same source, options and GPU. Without an ID, all ended "
        "requests that the filters leave and that were not measured again yet, oldest first. "
        "Prints the ids of the new requests, one a line. Ends with 1 when one of them could not "
        "be made."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("ids", nargs="*", metavar="ID", help="the id of a profile request")
        parser.add_argument("--ncu-version", metavar="V", help="as the report says: 2026.2, or all")
        parser.add_argument("--gpu", metavar="NAME", help="as it was asked for")
        parser.add_argument("--verdict", choices=_VERDICTS, help="of the request or of a capture")
        parser.add_argument("--since", type=read_time, metavar="DATE", help="asked for since then")
        parser.add_argument(
            "--revision",
            choices=("same", "newest"),
            default="same",
            help="of the task: the one that was measured, or the leaderboard's newest",
        )
        parser.add_argument("--limit", type=int, metavar="N", help="take N requests at most")
        parser.add_argument("--dry-run", action="store_true", help="print the ids of the old ones")

    def handle(
        self, *, ids: list[str], revision: str, limit: int | None, dry_run: bool, **options: Any
    ) -> None:
        filters = {name: options.get(name) for name in _FILTERS}
        filtered = any(value is not None for value in filters.values())
        if bool(ids) == filtered:
            raise CommandError("give either ids or filters")
        if not ids:
            ids = [str(key) for key in requests_to_rerun(**filters).values_list("pk", flat=True)]
        failed = 0
        chosen = ids[:limit]
        for given in self._with_progress(chosen):
            try:
                found = _find(given)
                if dry_run:
                    self.stdout.write(str(found.pk))
                    continue
                again = rerun_request(
                    found,
                    actor=None,
                    origin=ProfileRequest.Origin.COMMAND,
                    newest_revision=revision == "newest",
                )
            except (ServiceError, LookupError) as error:
                self.stderr.write(f"{given}: {error}")
                failed += 1
            else:
                self.stdout.write(str(again.pk))
        if failed:
            raise CommandError(f"{failed} of {len(chosen)} could not be measured again")

    def _with_progress(self, ids: list[str]) -> Iterator[str]:
        """Tells a terminal how far it is; on one line, unless the ids stand there as well."""
        for place, given in enumerate(ids, 1):
            yield given
            if self.stderr.isatty():
                whole = place == len(ids) or self.stdout.isatty()
                self.stderr.write(f"{place} of {len(ids)}", ending="\n" if whole else "\r")


def _find(given: str) -> ProfileRequest:
    """Raises LookupError with the words for whoever typed it."""
    try:
        found = ProfileRequest.objects.filter(pk=UUID(given)).select_related("job", "user").first()
    except ValueError as error:
        raise LookupError("this is not the id of a request") from error
    if found is None:
        raise LookupError("there is no such request")
    return found
