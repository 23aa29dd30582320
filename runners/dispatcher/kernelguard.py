"""The KernelGuard pre-check: a command that reads a submission before any of it runs.

wire-contract.md, 13.5. It reads a stranger's text, so it gets that and nothing of ours: no secrets,
no working directory of ours, and an end.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import shlex
import signal
from typing import Any

from django.conf import settings

from runners.exceptions import RunnerFault
from runners.handlers import KERNELGUARD_REJECTED
from runners.scratch import scratch_folder

logger = logging.getLogger(__name__)

UNAVAILABLE = "kernelguard_unavailable"
# What of our own environment the command gets; no secret has such a name.
PASSED = ("PATH", "LANG", "LC_ALL", "LC_CTYPE", "TMPDIR")
OUTPUT_MAX_BYTES = 2**20
TOLD_CHARS = 300
TOLD_RULES = 20


class _Unavailable(Exception):
    """The command gave no answer; the words are for the log."""


async def check_code(code: str) -> None:
    """Raises RunnerFault when the code is rejected, or cannot be checked and has to be.

    Only to be called where a command is configured.
    """
    try:
        answer = await _ask(code)
    except _Unavailable as why:
        logger.warning("KernelGuard is unavailable: %s", why)
        if settings.KERNELGUARD_FAIL_OPEN:
            return
        raise RunnerFault(
            "The KernelGuard pre-check is unavailable, which is not the submission's fault.",
            kind=UNAVAILABLE,
            retryable=False,
        ) from why
    if answer["should_filter"]:
        raise RunnerFault(_reason(answer), kind=KERNELGUARD_REJECTED, retryable=False)


async def _ask(code: str) -> dict[str, Any]:
    """The answer, with a boolean `should_filter`. Raises _Unavailable."""
    with scratch_folder("guard") as folder:
        try:
            process = await asyncio.create_subprocess_exec(
                *_command(),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.DEVNULL,
                cwd=folder,
                env=_environment(folder),
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            raise _Unavailable(f"it cannot be started: {error}") from error
        try:
            async with asyncio.timeout(settings.KERNELGUARD_TIMEOUT_SEC):
                output = await _exchange(process, code)
        except TimeoutError as error:
            raise _Unavailable(f"no end in {settings.KERNELGUARD_TIMEOUT_SEC:g} s") from error
        finally:
            await _end(process)
    return _read(output)


async def _exchange(process: asyncio.subprocess.Process, code: str) -> bytes:
    assert process.stdin is not None
    assert process.stdout is not None
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # it need not read it all
        process.stdin.write(code.encode())
        await process.stdin.drain()
    process.stdin.close()
    output = bytearray()
    while piece := await process.stdout.read(2**16):
        output += piece
        if len(output) > OUTPUT_MAX_BYTES:
            raise _Unavailable("it says too much")
    if await process.wait():
        raise _Unavailable(f"exit code {process.returncode}")
    return bytes(output)


async def _end(process: asyncio.subprocess.Process) -> None:
    """With all that it started, however it ended and whoever gave up waiting."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    await process.wait()


def _command() -> list[str]:
    options = {"--profile": settings.KERNELGUARD_PROFILE, "--config": settings.KERNELGUARD_CONFIG}
    given = [part for name, value in options.items() if value for part in (name, value)]
    return [*shlex.split(settings.KERNELGUARD_COMMAND), *given, "--api-mode"]


def _environment(home: str) -> dict[str, str]:
    return {name: os.environ[name] for name in PASSED if name in os.environ} | {"HOME": home}


def _read(output: bytes) -> dict[str, Any]:
    """Its last line that is not empty is its answer."""
    lines = [line for line in output.splitlines() if line.strip()]
    try:
        answer = json.loads(lines[-1]) if lines else None
    except (ValueError, RecursionError) as error:
        raise _Unavailable("its last line is not JSON") from error
    if not isinstance(answer, dict) or not isinstance(answer.get("should_filter"), bool):
        raise _Unavailable("it did not say whether to filter")
    return answer


def _reason(answer: dict[str, Any]) -> str:
    why = str(answer.get("filter_reason") or "no reason given")[:TOLD_CHARS]
    matched = answer.get("matched_patterns")
    found = matched if isinstance(matched, list) else []
    names = [str(each["pattern"]) for each in found if isinstance(each, dict) and "pattern" in each]
    rules = ", ".join(name[:TOLD_CHARS] for name in dict.fromkeys(names[:TOLD_RULES]))
    told = f"Submission rejected by KernelGuard pre-check ({why})."
    told = f"{told} Matched rules: {rules}." if rules else told
    # As far as every database can keep it.
    return told.replace("\0", "").encode(errors="replace").decode()
