"""GitHub's archive of a branch: downloaded and unpacked as if a stranger had made it."""

from __future__ import annotations

import re
import shutil
import stat
import zipfile
import zlib
from pathlib import Path, PurePosixPath

import httpx

from leaderboards.fetching.clock import Clock
from leaderboards.fetching.exceptions import BadArchive, FetchFailed, NoSuchBranch
from leaderboards.fetching.repositories import Source

DOWNLOAD_BYTES = 64 * 2**20
UNPACKED_BYTES = 256 * 2**20
ENTRIES = 20_000
STALL_S = 15.0
_COMMIT = re.compile(rb"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_KNOWN_PACKING = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_BLOCK = 2**20


def download_archive(source: Source, into: Path, clock: Clock) -> None:
    """Write the archive to `into`. Raises NoSuchBranch, FetchFailed or FetchTimedOut."""
    try:
        with httpx.stream(
            "GET",
            source.address,
            headers={"Accept-Encoding": "identity"},
            timeout=min(STALL_S, clock.left()),
            follow_redirects=False,
        ) as answer:
            _require_ok(answer, source)
            _write(answer, into, clock)
    except httpx.TimeoutException as error:
        clock.left()  # says so when it was all of the time
        raise FetchFailed(f"the host of {source.repository} does not answer") from error
    except httpx.HTTPError as error:
        raise FetchFailed(f"the host of {source.repository} cannot be reached") from error


def _require_ok(answer: httpx.Response, source: Source) -> None:
    if answer.status_code == httpx.codes.NOT_FOUND:
        raise NoSuchBranch(
            f"{source.repository} has no branch {source.branch!r}, or there is no such repository"
        )
    if answer.has_redirect_location:
        raise FetchFailed(f"{source.repository} is elsewhere now: redirects are not followed")
    if answer.status_code != httpx.codes.OK:
        raise FetchFailed(f"the host of {source.repository} answered {answer.status_code}")


def _write(answer: httpx.Response, into: Path, clock: Clock) -> None:
    size = 0
    with into.open("wb") as file:
        for chunk in answer.iter_raw():
            clock.left()
            size += len(chunk)
            if size > DOWNLOAD_BYTES:
                raise BadArchive(f"the archive has more than {DOWNLOAD_BYTES:,} bytes")
            file.write(chunk)


def unpack_archive(archive: Path, into: Path, clock: Clock) -> tuple[Path, str]:
    """Its top folder, and the commit that GitHub notes in it. Raises BadArchive.

    Links and other special files are left out: a task that names one is told that it is missing.
    """
    try:
        with zipfile.ZipFile(archive) as opened:
            entries = opened.infolist()
            top = _check(entries)
            for entry in entries:
                if not entry.is_dir() and _is_plain(entry):
                    clock.left()
                    _unpack_one(opened, entry, into)
            commit = opened.comment if _COMMIT.fullmatch(opened.comment) else b""
    # RuntimeError: encrypted; OSError: names that no file can have, or a file where a folder is.
    except (zipfile.BadZipFile, zlib.error, RuntimeError, OSError, EOFError, ValueError) as error:
        raise BadArchive("what came is no archive that can be unpacked") from error
    return into / top, commit.decode()


def _check(entries: list[zipfile.ZipInfo]) -> str:
    """The one folder that all is in. Raises BadArchive before anything is written."""
    if len(entries) > ENTRIES:
        raise BadArchive(f"the archive has more than {ENTRIES:,} files")
    if sum(entry.file_size for entry in entries) > UNPACKED_BYTES:
        raise BadArchive(f"the archive has more than {UNPACKED_BYTES:,} bytes unpacked")
    for entry in entries:
        path = PurePosixPath(entry.filename)
        if path.is_absolute() or ".." in path.parts or "\\" in entry.orig_filename:
            raise BadArchive(f"the archive has a file outside of it: {entry.filename[:80]!r}")
        if entry.compress_type not in _KNOWN_PACKING:
            raise BadArchive("the archive is packed in an unusual way")
    tops = {PurePosixPath(entry.filename).parts[:1] for entry in entries}
    if len(tops) != 1 or tops == {()}:
        raise BadArchive("the archive is none of a repository: it must hold one folder")
    ((top,),) = tops
    return top


def _is_plain(entry: zipfile.ZipInfo) -> bool:
    """A regular file, by the mode that a Unix archive has; others have none."""
    return stat.S_IFMT(entry.external_attr >> 16) in (0, stat.S_IFREG)


def _unpack_one(opened: zipfile.ZipFile, entry: zipfile.ZipInfo, into: Path) -> None:
    place = into / entry.filename
    place.parent.mkdir(parents=True, exist_ok=True)
    # "x": the same name twice is a trick. Reading ends at the size that was checked.
    with opened.open(entry) as packed, place.open("xb") as file:
        shutil.copyfileobj(packed, file, _BLOCK)
