"""Becomes the GPU side of a local run: PID_FILE PROGRAM ARGUMENTS…; standard library only.

The pid file is made by the process itself and only if there is none, so a run that is launched
twice, by a dispatcher that was killed and by the next one, is run once.
"""

from __future__ import annotations

import os
import sys


def main() -> None:
    pid_file, *command = sys.argv[1:]
    unfinished = f"{pid_file}.{os.getpid()}"
    with open(unfinished, "x") as out:
        # With its start time, since a pid alone is given to other processes later.
        out.write(f"{os.getpid()} {_start_time()}")
    try:
        os.link(unfinished, pid_file)
    except FileExistsError:
        sys.exit(0)
    finally:
        os.unlink(unfinished)
    os.execv(command[0], command)  # noqa: S606  a fixed program, and no shell is wanted


def _start_time() -> str:
    """In clock ticks since the machine's start."""
    with open("/proc/self/stat", "rb") as stat:
        return stat.read().rpartition(b")")[2].split()[19].decode()


if __name__ == "__main__":
    main()
