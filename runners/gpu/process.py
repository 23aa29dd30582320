"""Run a stranger's program within limits, and leave nothing of its family behind.

The caller's process becomes the reaper of all orphans below it, so that what detaches itself is
still found in /proc and ended. So `run` is for a process that does nothing else: whatever child
appears while it works counts as a member of the program's family, and dies with it.
"""

from __future__ import annotations

import contextlib
import os
import resource
import selectors
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from runners.gpu.family import LIBC, become_reaper, children_of, end_family
from runners.gpu.memory import MemoryWatch
from runners.gpu.output import Head, HeadAndTail

# A run ends this often late at most; so coarse that watching does not disturb a measurement.
TICK_S = 0.05
PIECE_BYTES = 2**16
RESULTS_BYTES = 2**20
PR_SET_PDEATHSIG = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """The user and group that programs run as, when the harness itself is root."""

    uid: int
    gid: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """What a program may use. `None` is no limit. `output_bytes` is kept of each stream."""

    seconds: float
    output_bytes: int = 16_384
    memory_bytes: int | None = None  # address space of each process
    family_bytes: int | None = None  # resident, of all its processes together
    file_bytes: int | None = None
    processes: int | None = None
    # At the time limit: how long the program may still save its work after an interrupt.
    grace_s: float = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """How a program ended. `exit_code` is negative for a signal; `duration` is in seconds."""

    command: str
    exit_code: int
    stdout: str
    stderr: str
    duration: float
    timed_out: bool
    out_of_memory: bool  # above `Bounds.family_bytes`, so its largest process was killed
    results: bytes  # what came through the result pipe
    results_cut: bool


def run(
    argv: list[str],
    *,
    cwd: Path,
    env: dict[str, str],
    bounds: Bounds,
    identity: Identity | None = None,
    results_variable: str | None = None,
    stdout_to: Path | None = None,
) -> Finished:
    """Run `argv` to its end or its limit, then end its family.

    `results_variable` names the environment variable that tells the program the number of the
    descriptor for its results. `stdout_to` is a new file for its standard output.
    Raises OSError where the program can't be started, SurvivorsError where its family can't be
    ended.
    """
    become_reaper()
    outsiders = children_of(os.getpid())
    with contextlib.ExitStack() as resources:
        streams = resources.enter_context(_Streams(bounds.output_bytes))
        target = resources.enter_context(stdout_to.open("xb")) if stdout_to else subprocess.PIPE
        started = time.monotonic()
        with streams.result_pipe(results_variable) as variables:
            child = subprocess.Popen(
                argv,
                cwd=cwd,
                env=env | variables,
                stdin=subprocess.DEVNULL,
                stdout=target,
                stderr=subprocess.PIPE,
                pass_fds=[int(number) for number in variables.values()],
                start_new_session=True,
                preexec_fn=_limiter(bounds),
                **_as_user(identity),
            )
        resources.enter_context(child)
        resources.enter_context(_no_survivors(child, outsiders))
        streams.watch(child)
        memory = MemoryWatch(bounds.family_bytes, outsiders)

        def ended() -> bool:
            memory.look()
            return child.poll() is not None

        timed_out = not streams.pump_until(ended, started + bounds.seconds)
        if timed_out and bounds.grace_s:
            _interrupt(child, ended, streams, bounds.grace_s)
        duration = time.monotonic() - started
        end_family(child, outsiders)
        streams.drain()
    return Finished(
        command=" ".join(argv),
        exit_code=child.returncode,
        stdout=streams.stdout.text(),
        stderr=streams.stderr.text(),
        duration=duration,
        timed_out=timed_out,
        out_of_memory=memory.rang,
        results=bytes(streams.results.content),
        results_cut=streams.results.cut,
    )


@contextlib.contextmanager
def _no_survivors(child: subprocess.Popen[bytes], outsiders: frozenset[int]) -> Iterator[None]:
    """Also when the harness itself is told to stop, nothing of the program stays."""
    try:
        yield
    except BaseException:
        end_family(child, outsiders)
        raise


def _interrupt(
    child: subprocess.Popen[bytes], ended: Callable[[], bool], streams: _Streams, grace_s: float
) -> None:
    """Ask as a terminal's Ctrl-C does, then more firmly. The profiler then saves its report."""
    for number in (signal.SIGINT, signal.SIGTERM):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, number)
        deadline = time.monotonic() + grace_s / 2
        if streams.pump_until(ended, deadline):
            return


class _Streams:
    """Reads all pipes of a program while it runs, so that it never blocks on one of them."""

    def __init__(self, output_bytes: int) -> None:
        self.stdout = HeadAndTail(output_bytes)
        self.stderr = HeadAndTail(output_bytes)
        self.results = Head(RESULTS_BYTES)
        self._selector = selectors.DefaultSelector()
        self._result_end: int | None = None

    def __enter__(self) -> _Streams:
        return self

    def __exit__(self, *error: object) -> None:
        self._selector.close()
        if self._result_end is not None:
            os.close(self._result_end)

    @contextlib.contextmanager
    def result_pipe(self, variable: str | None) -> Iterator[dict[str, str]]:
        """The variable for a program started inside, which is to inherit the write end."""
        if variable is None:
            yield {}
            return
        self._result_end, write_end = os.pipe()
        self._add(self._result_end, self.results)
        try:
            yield {variable: str(write_end)}
        finally:
            os.close(write_end)

    def watch(self, child: subprocess.Popen[bytes]) -> None:
        if child.stdout:
            self._add(child.stdout.fileno(), self.stdout)
        if child.stderr:
            self._add(child.stderr.fileno(), self.stderr)

    def pump_until(self, done: Callable[[], bool], deadline: float) -> bool:
        """Read until `done()`, or until the deadline, which gives False."""
        while not done():
            left = deadline - time.monotonic()
            if left <= 0:
                return False
            self._pump(min(TICK_S, left))
        return True

    def drain(self) -> None:
        """Read what is left in the pipes; it does not matter who still holds them open."""
        while self._pump(0):
            pass

    def _add(self, descriptor: int, sink: HeadAndTail | Head) -> None:
        os.set_blocking(descriptor, False)
        self._selector.register(descriptor, selectors.EVENT_READ, sink)

    def _pump(self, timeout: float) -> bool:
        got_something = False
        for key, _ in self._selector.select(timeout):
            try:
                piece = os.read(key.fd, PIECE_BYTES)
            except BlockingIOError:
                continue
            if piece:
                key.data.add(piece)
                got_something = True
            else:
                self._selector.unregister(key.fd)
        return got_something


def _limiter(bounds: Bounds) -> Callable[[], None]:
    """What the child does to itself between fork and exec."""
    limits = {
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_AS: bounds.memory_bytes,
        resource.RLIMIT_FSIZE: bounds.file_bytes,
        resource.RLIMIT_NPROC: bounds.processes,
    }

    def limit_self() -> None:
        # Should the harness be killed outright, its child does not go on alone.
        LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        for kind, value in limits.items():
            _, hard = resource.getrlimit(kind)
            if value is not None and (hard == resource.RLIM_INFINITY or value <= hard):
                resource.setrlimit(kind, (value, value))

    return limit_self


def _as_user(identity: Identity | None) -> dict[str, Any]:
    if identity is None:
        return {}
    return {"user": identity.uid, "group": identity.gid, "extra_groups": []}
