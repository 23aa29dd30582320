from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandParser

from kernelbot_site.local_setup import prepare_machine
from kernelbot_site.supervisor import Supervisor


class Command(BaseCommand):
    help = "Run the web server and the dispatcher on this machine until Ctrl-C."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--host", default="127.0.0.1")
        parser.add_argument("--port", type=int, default=8000)

    def handle(self, *args: Any, host: str, port: int, **options: Any) -> None:
        login = prepare_machine()
        supervisor = Supervisor(host, port)
        supervisor.start()
        gpus = ", ".join(f"{gpu.name} ({gpu.runner})" for gpu in settings.GPU_TYPES.values())
        self.stdout.write(
            f"service     {supervisor.address}\n"
            f"operators   {supervisor.address}/operators/  "
            f"{login.operator} / {login.operator_password}\n"
            f"CLI id      {login.cli_id}\n"
            f"admin API   POPCORN_ADMIN_TOKEN={settings.ADMIN_TOKEN or '(off)'}\n"
            f"GPUs        {gpus}\n\n"
            f"popcorn-cli reads the id from ~/.popcorn.yaml (cli_id: …) and the address from\n"
            f"POPCORN_API_URL={supervisor.address}. Ctrl-C ends the service."
        )
        self.stdout.flush()
        supervisor.run_until_stopped()
