from __future__ import annotations

import sys
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import transaction

from leaderboards.actions import register_person
from leaderboards.identity.bans import user_called
from leaderboards.identity.client_ids import activate_cli_id, find_waiting
from leaderboards.models import PopcornUser
from runners.exceptions import ServiceError


class Command(BaseCommand):
    help = "Activate an id that `popcorn register` printed, for a person who cannot sign in."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "id", help="the id; - reads it from standard input, out of the list of processes"
        )
        whose = parser.add_mutually_exclusive_group(required=True)
        whose.add_argument("--user", metavar="USER_ID", help="public id of a person who is known")
        whose.add_argument("--new-user", metavar="NAME", help="register a person of this name")

    @transaction.atomic
    def handle(self, *args: Any, **options: Any) -> None:
        typed = sys.stdin.readline() if options["id"] == "-" else options["id"]
        try:
            user = self._person(options["user"], options["new_user"])
            activate_cli_id(find_waiting(typed), user=user, actor=None)
        except ServiceError as error:
            raise CommandError(str(error)) from error
        self.stdout.write(f"active for {user.actor_label}")

    def _person(self, user_id: str | None, name: str | None) -> PopcornUser:
        return user_called(user_id) if user_id else register_person(str(name), actor=None)
