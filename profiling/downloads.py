"""Stored archives and the files inside them, sent in pieces whatever their size (FR-21)."""

from __future__ import annotations

import asyncio
import hashlib
import io
import zipfile
from collections.abc import AsyncIterator
from typing import IO, Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.utils.cache import get_conditional_response
from django.utils.http import content_disposition_header

from profiling.addresses import ARCHIVE_FILES, file_name
from profiling.evidence import details_of
from profiling.models import Capture, ProfileRequest
from profiling.ranges import Unsatisfiable, wanted_range
from profiling.reports.export import details_csv, details_text
from runners.artifacts import ArtifactGone, StorageUnavailable, open_artifact, signed_url
from runners.models import Artifact

PIECE_BYTES = 256 * 2**10
_MADE = {"details.txt": details_text, "details.csv": details_csv}
_TYPES = {"details.txt": "text/plain; charset=utf-8", "details.csv": "text/csv; charset=utf-8"}


def send_or_sign_archive(
    http: HttpRequest, request: ProfileRequest, capture: Capture, artifact: Artifact
) -> HttpResponseBase:
    """As `send_archive`; with SIGNED_DOWNLOADS_S a GET is led to the storage, if that can sign."""
    if http.method == "GET" and settings.SIGNED_DOWNLOADS_S:
        name = file_name(request, capture, ".zip")
        if url := signed_url(artifact, name, settings.SIGNED_DOWNLOADS_S):
            return HttpResponseRedirect(url, headers={"Cache-Control": "no-store"})
    return send_archive(http, request, capture, artifact)


def send_archive(
    http: HttpRequest, request: ProfileRequest, capture: Capture, artifact: Artifact
) -> HttpResponseBase:
    """The archive as stored. Raises what `open_artifact` raises, before anything was sent."""
    return _send(
        http,
        _Pieces(open_artifact(artifact)),
        name=file_name(request, capture, ".zip"),
        size=artifact.size,
        etag=f'"{artifact.sha256}"',
        content_type="application/zip",
    )


def send_file(
    http: HttpRequest, request: ProfileRequest, capture: Capture, artifact: Artifact, which: str
) -> HttpResponseBase:
    """One of `ARCHIVE_FILES`, unpacked. Raises as `send_archive`, and ArtifactGone without it.

    A details export that the archive lacks is made from what was kept of the report.
    """
    stored = open_artifact(artifact)
    try:
        archive = zipfile.ZipFile(stored)
        entry = archive.getinfo(ARCHIVE_FILES[which])
        opened = archive.open(entry)
    except KeyError as error:
        stored.close()
        if made := _made_here(capture, which):
            return _send_made(http, request, capture, which, made)
        raise ArtifactGone(f"this capture has no {ARCHIVE_FILES[which]}") from error
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, OSError) as error:
        stored.close()
        raise StorageUnavailable("the stored archive cannot be opened") from error
    return _send(
        http,
        _Pieces(opened, stored),
        name=file_name(request, capture, ".ncu-rep" if which == "report" else f".{which}"),
        size=entry.file_size,
        etag=f'"{artifact.sha256}-{which}"',
        content_type=_TYPES.get(which, "application/octet-stream"),
    )


def _made_here(capture: Capture, which: str) -> bytes:
    make = _MADE.get(which)
    details = details_of(capture) if make else None
    return "".join(make(details)).encode() if make and details else b""


def _send_made(
    http: HttpRequest, request: ProfileRequest, capture: Capture, which: str, made: bytes
) -> HttpResponseBase:
    response = _send(
        http,
        _Pieces(io.BytesIO(made)),
        name=file_name(request, capture, f".{which}"),
        size=len(made),
        etag=f'"{hashlib.sha256(made).hexdigest()}"',
        content_type=_TYPES[which],
    )
    response.headers["X-Details-Made-By"] = "service"  # and not by the profiler
    return response


class _Pieces:
    """Bytes of an open file, read in threads; the response closes it in every case."""

    def __init__(self, *opened: IO[bytes] | Any) -> None:
        self._opened = opened
        self._begin = self._left = 0

    def select(self, wanted: range) -> None:
        self._begin, self._left = wanted.start, len(wanted)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        if self._begin:
            await asyncio.to_thread(self._opened[0].seek, self._begin)
        while self._left:
            piece = await asyncio.to_thread(self._opened[0].read, min(PIECE_BYTES, self._left))
            if not piece:
                raise OSError("the stored file is shorter than its record says")
            self._left -= len(piece)
            yield piece

    def close(self) -> None:
        for each in self._opened:
            each.close()


def _send(
    http: HttpRequest, pieces: _Pieces, *, name: str, size: int, etag: str, content_type: str
) -> HttpResponseBase:
    """All of the file, the range that was asked for, or what a conditional request gets."""
    disposition = content_disposition_header(as_attachment=True, filename=name)
    assert disposition is not None
    headers = {
        "Content-Length": str(size),
        "Content-Disposition": disposition,
        "ETag": etag,
        "Cache-Control": "private, no-transform",
        "Accept-Ranges": "bytes",
    }
    # None unless the client has it already, or asked for another version.
    unsent = get_conditional_response(http, etag=etag)
    if unsent is None and http.method != "HEAD":
        return _send_pieces(http, pieces, size, headers | {"Content-Type": content_type})
    pieces.close()
    if unsent is not None:
        unsent.headers["ETag"] = etag
        return unsent
    return HttpResponse(content_type=content_type, headers=headers)


def _send_pieces(
    http: HttpRequest, pieces: _Pieces, size: int, headers: dict[str, str]
) -> HttpResponseBase:
    try:
        wanted = wanted_range(http, size=size, etag=headers["ETag"])
    except Unsatisfiable:
        pieces.close()
        return HttpResponse(status=416, headers={"Content-Range": f"bytes */{size}"})
    pieces.select(wanted or range(size))
    if wanted is None:
        return StreamingHttpResponse(pieces, headers=headers)
    headers |= {
        "Content-Length": str(len(wanted)),
        "Content-Range": f"bytes {wanted.start}-{wanted.stop - 1}/{size}",
    }
    return StreamingHttpResponse(pieces, status=206, headers=headers)
