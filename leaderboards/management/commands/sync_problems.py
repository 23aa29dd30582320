from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from leaderboards.problem_sync import SyncResult, sync_problems


class Command(BaseCommand):
    help = "Create and update leaderboards from a checkout of a problem repository."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("directory", type=Path, help="the checkout")
        parser.add_argument(
            "--force", action="store_true", help="change files and benchmarks of leaderboards too"
        )
        parser.add_argument("--problem-set", metavar="NAME", help="one competition file only")

    def handle(self, *args: Any, **options: Any) -> None:
        result = sync_problems(
            options["directory"],
            actor=None,
            force=options["force"],
            problem_set=options["problem_set"],
        )
        self._print(result)
        if result.errors:
            raise CommandError(f"{len(result.errors)} could not be synced")

    def _print(self, result: SyncResult) -> None:
        rows = [
            *(("created", name, "") for name in result.created),
            *(("updated", name, changes) for name, changes in result.updated),
            *(("skipped", name, reason) for name, reason in result.skipped),
            *(("error", name, reason) for name, reason in result.errors),
        ]
        width = max((len(name) for _, name, _ in rows), default=0)
        for outcome, name, text in rows:
            self.stdout.write(f"{outcome:<8} {name:<{width}}  {text}".rstrip())
        commit = result.provenance.commit or "not known (no git checkout, or git does not trust it)"
        self.stdout.write(f"commit: {commit}")
