"""The archive of one capture: the same files always give the same bytes."""

from __future__ import annotations

import hashlib
import shutil
import zipfile
from dataclasses import dataclass
from pathlib import Path

from runners.gpu.exports import DETAILS_CSV, DETAILS_TEXT, REPORT

MEMBERS = (REPORT, DETAILS_TEXT, DETAILS_CSV)
# Level 1 is within a quarter of what level 6 saves, at a fraction of the time.
LEVEL = 1
EARLIEST = (1980, 1, 1, 0, 0, 0)
FILE_MODE = 0o100644 << 16
UNIX = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Archive:
    path: Path
    size: int  # bytes
    sha256: str


def pack(folder: Path, target: Path) -> Archive:
    """Zip the members that are in `folder` into a new file."""
    with zipfile.ZipFile(target, "x", zipfile.ZIP_DEFLATED, compresslevel=LEVEL) as archive:
        for name in MEMBERS:
            source = folder / name
            if not source.is_file():
                continue
            entry = zipfile.ZipInfo(name, date_time=EARLIEST)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = FILE_MODE
            entry.create_system = UNIX
            entry.file_size = source.stat().st_size  # tells zipfile whether it needs ZIP64
            with source.open("rb") as content, archive.open(entry, "w") as packed:
                shutil.copyfileobj(content, packed, 2**20)
    with target.open("rb") as written:
        digest = hashlib.file_digest(written, "sha256").hexdigest()
    return Archive(path=target, size=target.stat().st_size, sha256=digest)
