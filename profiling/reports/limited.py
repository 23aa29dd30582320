"""A program in a child process that has little: time, memory, output, no environment, no input.

This file is both sides. `run_limited` starts it again as a program, `python -I limited.py LIMITS
PROGRAM ARGUMENT`, which takes the limits on before a line of PROGRAM runs. (`preexec_fn` would do
the same, but is not safe in a process with threads.)
"""

from __future__ import annotations

import json
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
    output_bytes: int = 16 * 2**20


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
    timed_out = threading.Event()
    command = [sys.executable, "-I", __file__, json.dumps(asdict(limits)), str(program), argument]
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={"LC_ALL": "C.UTF-8"},
        start_new_session=True,
    ) as child:

        def end_family() -> None:
            timed_out.set()
            _kill_group(child)

        clock = threading.Timer(limits.wall_s, end_family)
        clock.start()
        try:
            assert child.stdout is not None
            output = child.stdout.read(limits.output_bytes + 1)
        finally:
            clock.cancel()
            # Whoever closed its output but lives on, or was started by it, ends here.
            _kill_group(child)
    return Ended(
        returncode=child.returncode,
        timed_out=timed_out.is_set() or child.returncode == -signal.SIGXCPU,
        overflowed=len(output) > limits.output_bytes,
        output=output[: limits.output_bytes],
    )
