from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from leaderboards.fetching.sync import sync_repository
from leaderboards.models import Leaderboard
from leaderboards.problem_sync import SyncResult, sync_problems
from runners.exceptions import ServiceError


class Command(BaseCommand):
    help = "Create and update leaderboards from a checkout of a problem repository, or from afar."

    def add_arguments(self, parser: ArgumentParser) -> None:
        where = parser.add_mutually_exclusive_group(required=True)
        where.add_argument("directory", type=Path, nargs="?", help="the checkout")
        where.add_argument(
            "--repository", help="owner/name on GitHub or an address; see PROBLEM_REPOSITORIES"
        )
        parser.add_argument("--branch", default="main", help="of the repository (main)")
        parser.add_argument(
            "--force", action="store_true", help="change files and benchmarks of leaderboards too"
        )
        parser.add_argument("--problem-set", metavar="NAME", help="one competition file only")
        parser.add_argument("--closed", action="store_true", help="new leaderboards are closed")

    def handle(self, *args: Any, **options: Any) -> None:
        visibility = Leaderboard.Visibility
        how: dict[str, Any] = {
            "actor": None,
            "force": options["force"],
            "problem_set": options["problem_set"],
            "visibility": visibility.CLOSED if options["closed"] else visibility.PUBLIC,
        }
        try:
            if options["repository"]:
                result = sync_repository(options["repository"], branch=options["branch"], **how)
            elif not options["directory"].is_dir():
                raise CommandError(f"there is no directory {options['directory']}")
            else:
                result = sync_problems(options["directory"], **how)
        except ServiceError as error:
            raise CommandError(str(error)) from error
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
