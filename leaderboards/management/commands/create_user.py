from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import transaction

from leaderboards import actions
from leaderboards.exceptions import BadUserName


class Command(BaseCommand):
    help = "Register a person and print their CLI id, and an operator's password, this one time."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("name")
        parser.add_argument("--operator", action="store_true", help="may sign in at /operators/")

    @transaction.atomic
    def handle(self, *args: Any, **options: Any) -> None:
        name = options["name"]
        try:
            if options["operator"]:
                user, password = actions.register_operator(name)
                self.stdout.write(f"password: {password}")
                cli_id = actions.create_cli_id(user)
            else:
                user, cli_id = actions.register_submitter(name)
        except BadUserName as error:
            raise CommandError(str(error)) from error
        self.stdout.write(f"user_id: {user.user_id}\ncli_id: {cli_id}")
