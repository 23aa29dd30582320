"""The same script in several processes that begin at one moment, on the database of the test."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from django.db import connection

from tests.environment import GPU_TYPES
from tests.runners.processes import ROOT

BEFORE = """
import sys
import django

django.setup()
"""
READY = """
print("ready", flush=True)
sys.stdin.readline()
"""


def run_at_once(
    prepare: str, deed: str, *, database: str, folder: Path, arguments: list[list[str]]
) -> list[list[str]]:
    """The lines that each process printed; one process for each list of arguments."""
    connection.close()
    environment = {
        "PATH": os.environ["PATH"],
        "DJANGO_SETTINGS_MODULE": "kernelbot_site.settings",
        "SECRET_KEY": "only for tests",
        "DATA_DIR": str(folder),
        "DATABASE_URL": database,
        "GPU_TYPES": json.dumps(GPU_TYPES),
    }
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", BEFORE + prepare + READY + deed, *each],
            cwd=ROOT,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for each in arguments
    ]
    for process in processes:
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        process.stdin.write("go\n")
        process.stdin.flush()
    printed = [process.communicate(timeout=90)[0].splitlines() for process in processes]
    assert [process.returncode for process in processes] == [0] * len(processes)
    return printed
