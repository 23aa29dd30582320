"""Temporary folders, which the next dispatcher removes if their process was killed."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from pathlib import Path

_NAME = re.compile(r"kernelbot-[a-z]+-([0-9]+)-.+")


def scratch_folder(purpose: str) -> tempfile.TemporaryDirectory[str]:
    """For large files that are worked on; `purpose` is one word of small letters."""
    return tempfile.TemporaryDirectory(prefix=f"kernelbot-{purpose}-{os.getpid()}-")


def remove_abandoned_scratch() -> None:
    """Those of processes that no longer run here. What belongs to somebody else is left."""
    for folder in Path(tempfile.gettempdir()).glob("kernelbot-*-*-*"):
        found = _NAME.fullmatch(folder.name)
        if found and not _runs(int(found[1])):
            shutil.rmtree(folder, ignore_errors=True)


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        pass
    return True
