from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from leaderboards import actions
from leaderboards.models import PopcornUser


class Command(BaseCommand):
    help = "Make a further CLI id for a person and print it, this one time."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("user", help="user name")
        parser.add_argument("--web", action="store_true", help="for a web front end instead")

    def handle(self, *args: Any, **options: Any) -> None:
        user = PopcornUser.objects.filter(username=options["user"]).first()
        if user is None:
            raise CommandError(f"there is no user {options['user']!r}")
        if options["web"]:
            self.stdout.write(f"web_id: {actions.create_web_id(user)}")
        else:
            self.stdout.write(f"cli_id: {actions.create_cli_id(user)}")
