"""Write the audit trail to standard output."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from profiling.audit_export import csv_lines, json_lines
from profiling.management.times import read_time
from profiling.trail import find_events

_FORMS = {"jsonl": json_lines, "csv": csv_lines}


class Command(BaseCommand):
    help = "Write the audit trail, oldest first, as JSON lines or CSV; as large as it may be."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--format", choices=_FORMS, default="jsonl")
        parser.add_argument("--since", type=read_time, metavar="DATE", help="of then and later")
        parser.add_argument("--until", type=read_time, metavar="DATE", help="before then")
        parser.add_argument("--subject", metavar="ID", help="only what was done to this")

    def handle(
        self,
        *,
        format: str,
        since: datetime | None,
        until: datetime | None,
        subject: str | None,
        **options: Any,
    ) -> None:
        events = find_events(since=since, until=until, subject=subject)
        for line in _FORMS[format](events):
            self.stdout.write(line, ending="")
