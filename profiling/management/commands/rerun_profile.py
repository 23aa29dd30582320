"""Measure requests again, each as a new request that is linked to the old one."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.core.management.base import BaseCommand, CommandError, CommandParser

from profiling.actions import rerun_request
from profiling.models import ProfileRequest
from runners.exceptions import ServiceError


class Command(BaseCommand):
    help = (
        "Measure profile requests again: same source, task revision, options and GPU. Prints the "
        "ids of the new requests, one a line. Ends with 1 when one of them could not be made."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("ids", nargs="+", metavar="ID", help="the id of a profile request")

    def handle(self, *, ids: list[str], **options: Any) -> None:
        failed = 0
        for given in ids:
            try:
                again = rerun_request(
                    _find(given), actor=None, origin=ProfileRequest.Origin.COMMAND
                )
            except (ServiceError, LookupError) as error:
                self.stderr.write(f"{given}: {error}")
                failed += 1
            else:
                self.stdout.write(str(again.pk))
        if failed:
            raise CommandError(f"{failed} of {len(ids)} could not be measured again")


def _find(given: str) -> ProfileRequest:
    """Raises LookupError with the words for whoever typed it."""
    try:
        found = ProfileRequest.objects.filter(pk=UUID(given)).select_related("job", "user").first()
    except ValueError as error:
        raise LookupError("this is not the id of a request") from error
    if found is None:
        raise LookupError("there is no such request")
    return found
