from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand

from leaderboards.standings import settle_all_standings


class Command(BaseCommand):
    help = "Work out anew which run of each person is ranked; harmless at any time."

    def handle(self, *args: Any, **options: Any) -> None:
        total, wrong = settle_all_standings()
        self.stdout.write(f"standings: {total}, of which {wrong} were not up to date")
