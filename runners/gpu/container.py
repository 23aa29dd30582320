"""Run one job inside a container of a provider: the envelope's bytes for the config's bytes.

The job runs as a child with a memory limit below the container's. At its own limit a provider
kills the whole container and runs it again, so what a submission uses up must end as an ordinary
result.
"""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from runners.gpu import envelope
from runners.gpu.contract import Failure, FailureKind, JobOutcome, System, read_config
from runners.gpu.wire import WireError

LOOK_EVERY_S = 0.2
PACKAGE_ROOT = Path(__file__).resolve().parents[2]
PAGE_BYTES = resource.getpagesize()


def run_config(config: bytes, *, memory_bytes: int, limit_s: float) -> bytes:
    """Never raises for what a submission does; `limit_s` lies beyond the job's own time limit."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        home = Path(folder)
        home.chmod(0o711)  # the submission's user passes through to its workspace
        (home / "config.json").write_bytes(config)
        result = home / "result.envelope"
        child = subprocess.Popen(
            [
                sys.executable,
                "-S",
                "-m",
                "runners.gpu",
                str(home / "config.json"),
                str(result),
                "--workspace",
                folder,
            ],
            cwd=PACKAGE_ROOT,
            env={n: v for n, v in os.environ.items() if not n.startswith("MODAL_")},
            stdin=subprocess.DEVNULL,
        )
        try:
            _watch(child, memory_bytes, time.monotonic() + limit_s)
        finally:
            _end(child)
        if not result.exists():
            envelope.write(result, _lost(config, child.returncode), {})
        return result.read_bytes()


def _watch(child: subprocess.Popen[bytes], memory_bytes: int, deadline: float) -> None:
    """Until the child ends or the deadline; the largest of its family dies above the limit."""
    while time.monotonic() < deadline:
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(LOOK_EVERY_S)
            return
        family = _memory_below(child.pid)
        if sum(family.values()) > memory_bytes:
            largest = max(family, key=family.__getitem__)
            with contextlib.suppress(ProcessLookupError):
                os.kill(largest, signal.SIGKILL)


def _end(child: subprocess.Popen[bytes]) -> None:
    if child.poll() is None:
        child.terminate()  # the harness ends its family on the way out
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(20)
        child.kill()
        child.wait()


def _memory_below(ancestor: int) -> dict[int, int]:
    """Resident bytes of each process below `ancestor`, itself left out."""
    parents: dict[int, int] = {}
    resident: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):  # it is gone meanwhile
                # The name in brackets may hold anything, brackets and blanks too.
                fields = (entry / "stat").read_bytes().rpartition(b")")[2].split()
                parents[int(entry.name)] = int(fields[1])
                resident[int(entry.name)] = int(fields[21]) * PAGE_BYTES
    below: dict[int, int] = {}
    for pid in parents:
        above, seen = parents[pid], {pid}
        while above != ancestor and above in parents and above not in seen:
            seen.add(above)
            above = parents[above]
        if above == ancestor:
            below[pid] = resident[pid]
    return below


def _lost(config: bytes, exit_code: int) -> JobOutcome:
    """The outcome of a job whose harness left none."""
    job_id, attempt = "", 0
    with contextlib.suppress(WireError):
        known = read_config(config)
        job_id, attempt = known.job_id, known.attempt
    return JobOutcome(
        job_id=job_id,
        attempt=attempt,
        system=System(),
        runs={},
        failure=Failure(
            kind=FailureKind.GPU_SIDE_CRASHED,
            message=f"The GPU side ended without a result (exit code {exit_code}). "
            "This is a fault of the service, not of the submission.",
        ),
    )
