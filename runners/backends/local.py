"""Runs the GPU side as a process of this machine, which outlives the dispatcher.

    DATA_DIR/local-runs/<external id>/   config.json, started, pid, phase, stderr, result.envelope

What isolates a submission, and what does not, is in docs/operations.md, "The local runner". In
short: where the dispatcher is not root, a submission may do to files whatever the dispatcher's user
may. So this runner is for development and for machines that serve nothing else.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import pwd
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from django.conf import settings

import runners
from runners.backends import local_child
from runners.backends.base import RUN_LOST, Finished, KnownRun, Pending
from runners.backends.local_family import ASK_S, end_run, recorded_process, wait_until_gone
from runners.exceptions import RunnerFault
from runners.gpu import wire
from runners.gpu.contract import JobConfig

logger = logging.getLogger(__name__)

# What of our own environment the GPU side gets; no secret has such a name.
PASSED = (
    "PATH", "LANG", "LC_ALL", "LC_CTYPE", "LD_LIBRARY_PATH", "LIBRARY_PATH", "CPATH",
    "KERNELBOT_PYTHON", "TMPDIR",
)  # fmt: skip
PASSED_PREFIXES = ("CUDA_", "NVIDIA_")
# From the launch to the pid file: a matter of milliseconds, on a loaded machine of seconds.
LAUNCH_S = 30.0
LOGGED_BYTES = 2000
PHASE_BYTES = 200


class LocalRunner:
    name = "local"

    def __init__(self) -> None:
        self.root = Path(settings.DATA_DIR) / "local-runs"
        # Ours, to be reaped; runs that an earlier dispatcher launched are init's children.
        self._children: dict[str, subprocess.Popen[bytes]] = {}

    async def start(self, gpu: str, config: JobConfig) -> str:
        return await asyncio.to_thread(self._start, gpu, config)

    async def poll(self, external_id: str) -> Pending | Finished:
        return await asyncio.to_thread(self._poll, external_id)

    async def cancel(self, external_id: str) -> None:
        await asyncio.to_thread(self._cancel, external_id)

    async def release(self, external_id: str) -> None:
        await asyncio.to_thread(self._release, external_id)

    async def unclaimed(self, since: datetime) -> list[KnownRun]:
        return await asyncio.to_thread(self._unclaimed, since)

    async def queue_depth(self, gpu: str) -> int | None:
        return 0

    def _start(self, gpu: str, config: JobConfig) -> str:
        """A run that exists already is only found again."""
        external_id = f"{config.job_id}-{config.attempt}"
        run = self.root / external_id
        if (run / "pid").exists():
            return external_id
        try:
            run.mkdir(mode=0o700, parents=True, exist_ok=True)
            _write(run / "started", str(time.time()).encode())
            _write(run / "config.json", wire.dumps(_limited(gpu, config)))
            self._children[external_id] = _launch(run)
        except OSError as error:
            raise RunnerFault(
                f"The run could not be started on this machine: {error.strerror}.",
                kind="local_start_failed",
                retryable=True,
            ) from error
        return external_id

    def _poll(self, external_id: str) -> Pending | Finished:
        run, result = self.root / external_id, self.root / external_id / "result.envelope"
        if child := self._children.get(external_id):
            child.poll()
        # In this order: a process that is gone has left its result before.
        is_running = self._is_running(run)
        if result.exists():
            return Finished(result)
        if is_running:
            return Pending(_read_phase(run / "phase"))
        if not (run / "started").exists():
            raise RunnerFault("This machine has no such run.", kind="run_unknown", retryable=False)
        logger.error("run %s left no result: %s", external_id, _tail(run / "stderr"))
        raise RunnerFault(
            "The run ended without a result: its process was killed or it crashed.",
            kind=RUN_LOST,
            retryable=True,
        )

    def _is_running(self, run: Path) -> bool:
        if (run / "pid").exists():
            return recorded_process(run / "pid") is not None
        return (run / "started").exists() and time.time() - _started(run) < LAUNCH_S

    def _cancel(self, external_id: str) -> None:
        run, left = self.root / external_id, []
        if run.exists():
            _bar_launch(run)
            left = end_run(run / "pid", _read_workspace(run))
        if child := self._children.get(external_id):
            # A launch that was barred is still about to find that out.
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(ASK_S)
                del self._children[external_id]
        if left:
            raise RunnerFault(
                f"Processes of the run cannot be ended: {left[:10]}.",
                kind="survivors",
                retryable=True,
            )

    def _release(self, external_id: str) -> None:
        run = self.root / external_id
        # Its result is there before its process has tidied up and ended.
        wait_until_gone(run / "pid", ASK_S)
        self._cancel(external_id)
        if workspace := _read_workspace(run):
            shutil.rmtree(workspace, ignore_errors=True)
        shutil.rmtree(run, ignore_errors=True)

    def _unclaimed(self, since: datetime) -> list[KnownRun]:
        if not self.root.exists():
            return []
        runs = [run for run in self.root.iterdir() if (run / "started").exists()]
        known = [KnownRun(run.name, datetime.fromtimestamp(_started(run), UTC)) for run in runs]
        return [run for run in known if run.started_at >= since]


def _limited(gpu: str, config: JobConfig) -> JobConfig:
    """Limits that only make sense on a machine of our own, where the config sets none."""
    limits = config.limits
    offered = settings.GPU_TYPES.get(gpu)
    if limits.memory_bytes is None and not (offered and offered.sm):
        # A GPU's driver reserves more address space than any machine has memory.
        limits = replace(limits, memory_bytes=settings.LOCAL_MEMORY_BYTES)
    if limits.processes is None and os.geteuid() == 0:
        # Counted over all processes of the user, so only for a user that does nothing else.
        limits = replace(limits, processes=settings.LOCAL_PROCESSES)
    return replace(config, limits=limits)


def _launch(run: Path) -> subprocess.Popen[bytes]:
    # Not below DATA_DIR, whose parents may be closed to the user that the submission runs as.
    workspace = _read_workspace(run) or tempfile.mkdtemp(prefix="kernelbot-run-")
    _write(run / "workspace", workspace.encode())
    Path(workspace).chmod(0o711)
    python = [sys.executable, "-S"]
    gpu_side = [
        *(*python, "-m", "runners.gpu", str(run / "config.json"), str(run / "result.envelope")),
        *("--phase", str(run / "phase"), "--workspace", workspace, *_drop_to()),
    ]
    network = "open" if settings.LOCAL_NETWORK else "closed"
    with (run / "stderr").open("ab") as stderr:
        return subprocess.Popen(
            [*python, str(local_child.__file__), str(run / "pid"), network, *gpu_side],
            cwd=Path(runners.__file__).parent.parent,
            env=_environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=stderr,
            start_new_session=True,
        )


def _drop_to() -> list[str]:
    if os.geteuid() != 0:
        return []
    user = pwd.getpwnam(settings.LOCAL_RUN_USER)
    return ["--drop-to", f"{user.pw_uid}:{user.pw_gid}"]


def _environment() -> dict[str, str]:
    return {
        name: value
        for name, value in os.environ.items()
        if name in PASSED or name.startswith(PASSED_PREFIXES)
    }


def _write(target: Path, content: bytes) -> None:
    unfinished = target.with_name(f"{target.name}.{os.getpid()}.unfinished")
    unfinished.write_bytes(content)
    unfinished.replace(target)


def _bar_launch(run: Path) -> None:
    """A launch that has not made its pid file yet will find one, and end itself."""
    _write(run / "barred", b"0 0")
    with contextlib.suppress(FileExistsError):
        os.link(run / "barred", run / "pid")


def _started(run: Path) -> float:
    return float((run / "started").read_text())


def _read_workspace(run: Path) -> str:
    file = run / "workspace"
    return file.read_text() if file.exists() else ""


def _read_phase(file: Path) -> str:
    try:
        with file.open("rb") as source:
            return source.read(PHASE_BYTES).decode(errors="replace").strip()
    except OSError:
        return ""


def _tail(file: Path) -> str:
    """The end of what the GPU side itself said; submissions do not write there."""
    try:
        with file.open("rb") as source:
            source.seek(max(0, file.stat().st_size - LOGGED_BYTES))
            return source.read().decode(errors="replace").strip()
    except OSError:
        return ""
