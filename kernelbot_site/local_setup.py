"""What a fresh machine needs before it can serve: tables, static files, problems, people."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

from django.conf import settings
from django.core.management import call_command
from django.db import transaction

from leaderboards.actions import change_leaderboard, register_operator, register_submitter
from leaderboards.models import Leaderboard
from leaderboards.problem_sync import sync_problems

EXAMPLES = settings.BASE_DIR / "examples"


@dataclass(frozen=True, slots=True)
class Credentials:
    """Made once for this machine and kept in DATA_DIR, readable by its owner alone."""

    cli_id: str
    operator: str
    operator_password: str


def prepare_machine() -> Credentials:
    """Bring tables, static files, example leaderboards and two people into being; repeatable."""
    settings.DATA_DIR.mkdir(parents=True, exist_ok=True)
    call_command("migrate", verbosity=0)
    call_command("collectstatic", verbosity=0, interactive=False)
    sync_problems(EXAMPLES, actor=None)
    offer_local_gpus()
    return read_or_make_credentials(settings.DATA_DIR / "local_credentials.json")


def offer_local_gpus() -> None:
    """Offer the GPUs of this machine for the GPU example, whichever they are."""
    here = [gpu.name for gpu in settings.GPU_TYPES.values() if gpu.ncu]
    for board in Leaderboard.objects.existing():
        missing = [name for name in here if name not in board.gpu_types]
        if missing and "CPU" not in board.gpu_types:
            offered = {"gpu_types": [*board.gpu_types, *missing]}
            change_leaderboard(board, actor=None, changes=offered)


def read_or_make_credentials(path: Path) -> Credentials:
    if path.exists():
        return Credentials(**json.loads(path.read_text()))
    with transaction.atomic():
        _, cli_id = register_submitter("author")
        operator, password = register_operator("operator")
        made = Credentials(cli_id, operator.username, password)
        with open(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "w") as file:
            json.dump(asdict(made), file)
    return made
