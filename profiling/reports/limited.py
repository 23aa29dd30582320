"""A program in a child process that has little: time, memory, output, no environment, no input.

This file is both sides. `run_limited` starts it again as a program, `python -I limited.py LIMITS
PROGRAM ARGUMENT`, which takes the limits on before a line of PROGRAM runs. (`preexec_fn` would do
the same, but is not safe in a process with threads; `runners.gpu.process` wants a process that
does nothing else.)
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import resource
import runpy
import signal
import subprocess
import sys
import threading
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildLimits:
    wall_s: float = 120
    cpu_s: int = 60
    memory_bytes: int = 2 * 2**30  # address space; a usual report takes 160 MB
    open_files: int = 64
    output_bytes: int = 32 * 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How the child ended. `returncode` is negative for a signal, as in `subprocess`."""

    returncode: int
    timed_out: bool  # by wall clock or CPU time
    overflowed: bool  # it printed more than the limit, and was ended for that
    output: bytes

    @property
    def how(self) -> str:
        if self.returncode >= 0:
            return f"exit code {self.returncode}"
        try:
            return signal.Signals(-self.returncode).name
        except ValueError:
            return f"signal {-self.returncode}"


def run_limited(program: Path, argument: str, limits: ChildLimits) -> Ended:
    """Run a Python file with one argument and wait for it. Standard error is thrown away."""
    command = [sys.executable, "-I", __file__, json.dumps(asdict(limits)), str(program), argument]
    rang = threading.Event()
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={"LC_ALL": "C.UTF-8"},
        start_new_session=True,
    ) as child:

        def ring() -> None:
            rang.set()
            _kill_family(child)

        clock = threading.Timer(limits.wall_s, ring)
        clock.start()
        try:
            assert child.stdout is not None
            output = child.stdout.read(limits.output_bytes + 1)
            if len(output) > limits.output_bytes:
                _kill_family(child)
            # Not reaped yet, so that its process group can't have become anybody else's.
            os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        finally:
            clock.cancel()
            _kill_family(child)
    return Ended(
        returncode=child.returncode,
        timed_out=rang.is_set() or child.returncode == -signal.SIGXCPU,
        overflowed=len(output) > limits.output_bytes,
        output=output[: limits.output_bytes],
    )


def _kill_family(child: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)


def _take_on(limits: ChildLimits) -> None:
    wanted = {
        resource.RLIMIT_AS: limits.memory_bytes,
        resource.RLIMIT_NOFILE: limits.open_files,
        resource.RLIMIT_FSIZE: 0,
        resource.RLIMIT_CORE: 0,
    }
    for kind, most in wanted.items():
        resource.setrlimit(kind, (most, most))
    # The soft limit ends it by SIGXCPU, which tells it apart; the hard one comes a second later.
    resource.setrlimit(resource.RLIMIT_CPU, (limits.cpu_s, limits.cpu_s + 1))
    # Should the parent be killed, its clock is gone, and the child still ends.
    signal.alarm(math.ceil(limits.wall_s) + 10)


if __name__ == "__main__":
    _take_on(ChildLimits(**json.loads(sys.argv[1])))
    sys.argv = sys.argv[2:]
    runpy.run_path(sys.argv[0], run_name="__main__")
