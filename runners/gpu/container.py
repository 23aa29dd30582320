"""Run one job inside a container of a provider: the envelope's bytes for the config's bytes.

The job runs as a child: if its harness ends without a result, the container still gives one.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from runners.gpu import envelope
from runners.gpu.contract import Failure, FailureKind, JobOutcome, System, read_config
from runners.gpu.wire import WireError

PACKAGE_ROOT = Path(__file__).resolve().parents[2]


def run_config(config: bytes, *, memory_bytes: int, limit_s: float) -> bytes:
    """Never raises for what a submission does; `limit_s` lies beyond the job's own time limit.

    `memory_bytes` are for the submission and its children, and lie below the container's own.
    """
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
                "--family-bytes",
                str(memory_bytes),
            ],
            cwd=PACKAGE_ROOT,
            env={n: v for n, v in os.environ.items() if not n.startswith("MODAL_")},
            stdin=subprocess.DEVNULL,
        )
        try:
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(limit_s)
        finally:
            _end(child)
        if not result.exists():
            envelope.write(result, _lost(config, child.returncode), {})
        return result.read_bytes()


def _end(child: subprocess.Popen[bytes]) -> None:
    if child.poll() is None:
        child.terminate()  # the harness ends its family on the way out
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(20)
        child.kill()
        child.wait()


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
