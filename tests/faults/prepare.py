"""Tables, problems and people of a stack under test, in one process: python -m tests.faults.prepare.

Arguments: the folder of the problems, then names of people. The last line is their CLI ids as JSON.
"""

from __future__ import annotations

import json
import sys

import django

django.setup()

from django.core.management import call_command  # noqa: E402
from django.db import transaction  # noqa: E402

from leaderboards.actions import register_submitter  # noqa: E402


@transaction.atomic
def register(name: str) -> str:
    return register_submitter(name)[1]


def main() -> None:
    problems, *names = sys.argv[1:]
    call_command("migrate", verbosity=0)
    call_command("sync_problems", problems)
    print(json.dumps({name: register(name) for name in names}))


if __name__ == "__main__":
    main()
