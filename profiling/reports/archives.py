"""Look into the archive of a capture before it is opened: it comes from a stranger's container."""

from __future__ import annotations

import shutil
import struct
import zipfile
import zlib
from pathlib import Path

REPORT = "profile.ncu-rep"
DETAILS_TEXT = "ncu-details.txt"
DETAILS_CSV = "ncu-details.csv"
NAMES = frozenset({REPORT, DETAILS_TEXT, DETAILS_CSV})

MAX_ENTRIES = 10
MAX_DIRECTORY_BYTES = 2**16
MAX_UNPACKED_BYTES = 2**31
# Real reports shrink about tenfold. A small one may be padded with zeros and is harmless (FR-04).
MAX_RATIO = 200
RATIO_MATTERS_FROM = 64 * 2**20

# End of central directory: signature, disks, entries, size, offset; then a comment, here none.
_END = struct.Struct("<4s4x2xHII2x")
_ZIP64_LOCATOR = struct.Struct("<4s16x")


class ArchiveError(ValueError):
    """The file is not an archive as the GPU side makes them; the message says what is wrong."""


# Of an export that is compared with the report; what is longer is cut.
MAX_EXPORT_BYTES = 2**25


def unpack_report(archive: Path, target: Path) -> dict[str, bytes]:
    """Write the report of a checked archive to the new file `target`, in pieces.

    The exports beside it come back by name, the first `MAX_EXPORT_BYTES` of each.
    """
    _check_directory(archive)
    try:
        with zipfile.ZipFile(archive) as opened:
            _check_entries(opened.infolist())
            with opened.open(REPORT) as report, target.open("xb") as out:
                shutil.copyfileobj(report, out, 2**20)
            return {
                name: opened.open(name).read(MAX_EXPORT_BYTES)
                for name in (DETAILS_TEXT, DETAILS_CSV)
                if name in opened.namelist()
            }
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        raise ArchiveError(f"the archive is damaged: {type(error).__name__}") from error


def _check_directory(archive: Path) -> None:
    """zipfile reads the whole directory into memory, however large: so its size comes first."""
    tail_size = _ZIP64_LOCATOR.size + _END.size
    with archive.open("rb") as opened:
        size = opened.seek(0, 2)
        opened.seek(max(0, size - tail_size))
        tail = opened.read(tail_size)
    if len(tail) < _END.size or tail[-_END.size :][:4] != b"PK\5\6":
        raise ArchiveError("the file does not end as a zip archive")
    if tail[: -_END.size][:4] == b"PK\6\7":
        raise ArchiveError("the archive is in the ZIP64 form, which none of ours needs")
    _, entries, directory_size, _ = _END.unpack(tail[-_END.size :])
    if entries > MAX_ENTRIES or directory_size > MAX_DIRECTORY_BYTES:
        raise ArchiveError(f"the archive holds {entries} files, at most {MAX_ENTRIES} are read")


def _check_entries(entries: list[zipfile.ZipInfo]) -> None:
    names = [entry.filename for entry in entries]
    if unknown := sorted(set(names) - NAMES):
        raise ArchiveError(f"the archive holds a file that is none of ours: {unknown[0][:80]!r}")
    if len(names) != len(set(names)):
        raise ArchiveError("the archive holds a file twice")
    if REPORT not in names:
        raise ArchiveError(f"the archive holds no {REPORT}")
    for entry in entries:
        if entry.flag_bits & 1:
            raise ArchiveError("the archive is encrypted")
        if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise ArchiveError("the archive is compressed in a way that the CLI may not read")
        ratio_is_odd = entry.file_size > MAX_RATIO * max(entry.compress_size, 1)
        if ratio_is_odd and entry.file_size > RATIO_MATTERS_FROM:
            raise ArchiveError(f"{entry.filename} is {entry.file_size} bytes out of nearly nothing")
    if sum(entry.file_size for entry in entries) > MAX_UNPACKED_BYTES:
        raise ArchiveError(f"the archive holds more than {MAX_UNPACKED_BYTES} bytes")
