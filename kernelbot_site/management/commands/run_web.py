"""manage.py run_web: the web server of production, behind a proxy."""

from __future__ import annotations

import os
import sys
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandParser

from kernelbot_site.supervisor import web_command


class Command(BaseCommand):
    help = "Check the settings, then become the web server with WEB_PROCESSES processes."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--host", default="127.0.0.1")
        parser.add_argument("--port", type=int, default=8000)

    def handle(self, *args: Any, host: str, port: int, **options: Any) -> None:
        os.execv(sys.executable, web_command(host, port, settings.WEB_PROCESSES))  # noqa: S606
