"""The `result` event: rows and stored archives as the CLI reads them (wire-contract.md, 6.4, 6.5).

The archives of a result may be larger than memory, so the JSON text is made with marks in the
place of each `trace`, and the base64 of the stored file is put there in pieces.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import secrets
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.core.files import File

from profiling.addresses import archive_url
from profiling.evidence import ABOUT_DURATIONS
from profiling.models import Capture, ProfileRequest
from profiling.wire_report import capture_facts, describe_result, messages_of
from runners.artifacts import open_artifact
from runners.models import Artifact

# A multiple of 3, so that the base64 of pieces is the base64 of the whole.
PIECE_BYTES = 384 * 2**10
PROFILER = "Nsight-Compute"
# Kept free of the line's cap for each run, which may yet be told that its archive stays behind.
SPARE_BYTES = 1024
NO_SYSTEM = {
    "gpu": "",
    "device_count": 0,
    "cpu": "",
    "runtime": "",
    "platform": "",
    "torch": "",
    "hostname": "",
}
NO_RUN = {
    "success": False,
    "passed": False,
    "command": "",
    "stdout": "",
    "stderr": "",
    "exit_code": -1,
    "duration": 0.0,
    "result": {},
}


class DamagedArtifact(Exception):
    """What the storage gave is not what was stored."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WireResult:
    """`parts` are pieces of JSON text, and artifacts whose base64 stands between them.

    `messages` are for status events before the result.
    """

    parts: tuple[str | Artifact, ...]
    messages: tuple[str, ...]

    async def pieces(self) -> AsyncIterator[bytes]:
        """One line of ASCII JSON. Raises what `open_artifact` raises, OSError, DamagedArtifact."""
        for part in self.parts:
            if isinstance(part, str):
                yield part.encode("ascii")
            else:
                async for piece in _base64(part):
                    yield piece


def build_result(request: ProfileRequest, captures: list[Capture]) -> WireResult:
    """All of a finished request; archives beyond the cap of the line stay behind, and it is said."""
    nonce = secrets.token_hex(16)  # no submission can print a mark
    traces = {f"{nonce}-{c.benchmark_index}": c.artifact for c in captures if c.artifact}
    runs = {c.key: _eval_result(c, f"{nonce}-{c.benchmark_index}") for c in captures}
    document = _document(request, captures, runs)
    left_out = _beyond_cap(runs, len(json.dumps(document)))
    for key in left_out:
        _leave_out(runs[key], left_out[key])
    return WireResult(
        parts=tuple(_split(json.dumps(document, allow_nan=False), nonce, traces)),
        messages=(*messages_of(request, captures), *left_out.values()),
    )


def _document(
    request: ProfileRequest, captures: list[Capture], runs: dict[str, Any]
) -> dict[str, Any]:
    assert request.revision is not None
    metadata = {
        "capture_options": request.capture_options,
        "benchmark_specs": request.benchmark_specs,
        "config_sha256": request.config_sha256,
        "request_id": str(request.pk),
        "task_revision": request.revision.sha256,
        "task_commit": request.revision.commit,
        "source_sha256": request.source_sha256,
        "seed": request.seed,
        "ncu_version_wanted": request.ncu_version_wanted,
        "origin": request.result_origin,
        "verdict": request.verdict,
        "about_durations": ABOUT_DURATIONS,
        "captures": {capture.key: capture_facts(capture) for capture in captures},
    }
    result = {
        "success": True,
        "error": "",
        "system": NO_SYSTEM | request.system,
        "runs": runs,
        "cpu_compile": None,
        "profile_metadata": metadata,
    }
    return {
        "status": "success",
        "results": [result],
        "reports": [describe_result(request, captures)],
    }


def _eval_result(capture: Capture, mark: str) -> dict[str, Any]:
    """`run` is never null, since its stderr is where the CLI's reader finds out why."""
    run = NO_RUN | (capture.run or {})
    run["result"] = _evaluator_result(capture, run["result"])
    if capture.status == Capture.Status.FAILED:
        run["success"] = False
        run["stderr"] = f"{run['stderr']}\n{capture.failure_message}".lstrip("\n")
    profile = None
    if capture.artifact is not None:
        profile = {
            "profiler": PROFILER,
            "trace": mark,
            "download_url": archive_url(capture),
            "size": capture.artifact.size,
            "sha256": capture.artifact.sha256,
        }
    return {
        "start": capture.started_at.isoformat(),
        "end": capture.finished_at.isoformat(),
        "compilation": capture.compilation,
        "run": run,
        "profile": profile,
    }


def _evaluator_result(capture: Capture, told: dict[str, str]) -> dict[str, Any]:
    """The evaluator's values, with the three that we know better (wire-contract.md, 6.6)."""
    known: dict[str, Any] = {"benchmark-count": 1, "benchmark.0.spec": capture.spec}
    if capture.extract:
        known["benchmark.0.report"] = base64.b64encode(capture.extract.encode()).decode("ascii")
    return told | known


def _beyond_cap(runs: dict[str, Any], text_bytes: int) -> dict[str, str]:
    """Keys of `runs` whose archive does not fit into the line any more, and what to say of it."""
    room = settings.RESULT_LINE_MAX_BYTES - text_bytes - SPARE_BYTES * (len(runs) + 1)
    left_out = {}
    for key in sorted(runs):
        profile = runs[key]["profile"]
        if profile is None:
            continue
        needed = 4 * ((profile["size"] + 2) // 3)
        if needed <= room:
            room -= needed
        else:
            left_out[key] = (
                f"{key}: the archive of {profile['size']:,} bytes is too large for this stream "
                f"(at most {settings.RESULT_LINE_MAX_BYTES:,} bytes in all); "
                f"download it from {profile['download_url']}"
            )
    return left_out


def _leave_out(eval_result: dict[str, Any], why: str) -> None:
    eval_result["profile"]["trace"] = None
    run = eval_result["run"]
    run["stderr"] = f"{run['stderr']}\n{why}".lstrip("\n")


def _split(text: str, nonce: str, traces: dict[str, Artifact]) -> list[str | Artifact]:
    """The text cut at its marks, with the artifact of each mark in its place."""
    first, *rest = text.split(f"{nonce}-")
    parts: list[str | Artifact] = [first]
    for piece in rest:
        index, quote, after = piece.partition('"')
        parts += [traces[f"{nonce}-{index}"], quote + after]
    return parts


async def _base64(artifact: Artifact) -> AsyncIterator[bytes]:
    stored = await asyncio.to_thread(open_artifact, artifact)
    digest = hashlib.sha256()
    try:
        while piece := await asyncio.to_thread(_next_piece, stored, digest):
            yield piece
    finally:
        stored.close()
    if digest.hexdigest() != artifact.sha256:
        raise DamagedArtifact(f"{artifact} has another sha256 than when it was stored")


def _next_piece(stored: File[bytes], digest: hashlib._Hash) -> bytes:
    content = stored.read(PIECE_BYTES)
    digest.update(content)
    return base64.b64encode(content)
