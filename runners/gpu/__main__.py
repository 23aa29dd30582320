"""python -S -m runners.gpu CONFIG RESULT: run the job of a config file, write its envelope.

ncu, nvcc and nvidia-smi are taken from PATH, and python3 for evaluators too, unless the
environment variable KERNELBOT_PYTHON names another.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import json
import logging
import os
import signal
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from runners.gpu import envelope
from runners.gpu.contract import Failure, FailureKind, JobOutcome, System, read_config
from runners.gpu.job import run_job
from runners.gpu.process import Identity
from runners.gpu.wire import WireError

PR_SET_DUMPABLE = 4


def main() -> int:
    """0 whenever an envelope was written, whatever is in it."""
    arguments = _arguments()
    logging.basicConfig(stream=sys.stderr)
    # The programs that we run, of the same user perhaps, shall not look into our memory or files.
    ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
    signal.signal(signal.SIGTERM, _stop)
    content = arguments.config.read_bytes()
    with tempfile.TemporaryDirectory(
        dir=arguments.workspace, ignore_cleanup_errors=True
    ) as workspace:
        try:
            config = read_config(content)
        except WireError as error:
            outcome, archives = _refused(content, error), dict[str, Path]()
        else:
            outcome, archives = run_job(
                config,
                Path(workspace),
                report_phase=_phase_writer(arguments.phase),
                identity=arguments.drop_to,
                family_bytes=arguments.family_bytes,
            )
        envelope.write(arguments.result, outcome, archives)
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="runners.gpu", description=__doc__)
    parser.add_argument("config", type=Path, help="the job's config, JSON")
    parser.add_argument("result", type=Path, help="where the envelope appears, whole or not at all")
    parser.add_argument("--phase", type=Path, help="a file that says what is being done")
    parser.add_argument("--workspace", type=Path, help="where to make the job's folder")
    parser.add_argument(
        "--drop-to", type=_identity, metavar="UID:GID", help="who runs the submission; needs root"
    )
    parser.add_argument(
        "--family-bytes", type=int, help="memory of the submission and its children together"
    )
    return parser.parse_args()


def _identity(text: str) -> Identity:
    uid, _, gid = text.partition(":")
    return Identity(uid=int(uid), gid=int(gid))


def _stop(number: int, frame: object) -> None:
    # Raised inside whatever runs now, which ends its family of processes on the way out.
    raise SystemExit(128 + number)


def _phase_writer(target: Path | None) -> Callable[[str], None]:
    def write(phase: str) -> None:
        if target is None:
            return
        unfinished = target.with_name(target.name + ".part")
        with contextlib.suppress(OSError):  # a lost progress text must not end the job
            unfinished.write_text(phase + "\n", encoding="utf-8")
            os.replace(unfinished, target)

    return write


def _refused(content: bytes, error: WireError) -> JobOutcome:
    """An outcome for a config that can't be read, under the job's id if that much can be."""
    raw: Any = None
    with contextlib.suppress(ValueError, RecursionError):
        raw = json.loads(content)
    job_id, attempt = (raw.get("job_id"), raw.get("attempt")) if isinstance(raw, dict) else (0, 0)
    return JobOutcome(
        job_id=job_id if isinstance(job_id, str) else "",
        attempt=attempt if isinstance(attempt, int) else 0,
        system=System(),
        runs={},
        failure=Failure(kind=FailureKind.BAD_CONFIG, message=f"The config is unusable: {error}"),
    )


if __name__ == "__main__":
    sys.exit(main())
