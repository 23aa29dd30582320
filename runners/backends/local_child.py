"""Becomes the GPU side of a local run: PID_FILE open|closed PROGRAM ARGUMENTS…; standard library only.

The pid file is made by the process itself and only if there is none, so a run that is launched
twice, by a dispatcher that was killed and by the next one, is run once. A closed network is one of
the run's own, where the system gives one; where it gives none, stderr says so and the run goes on.
"""

from __future__ import annotations

import fcntl
import os
import socket
import struct
import sys

SIOCSIFFLAGS = 0x8914
IFF_UP = 1


def main() -> None:
    pid_file, network, *command = sys.argv[1:]
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
    if network == "closed":
        try:
            leave_network()
        except OSError as error:
            print(f"this run shares the machine's network: {error}", file=sys.stderr)  # noqa: T201
    os.execv(command[0], command)  # noqa: S606  a fixed program, and no shell is wanted


def leave_network() -> None:
    """From now on there is only a loopback that nobody else is on, and no shared memory of others.

    Root keeps its rights; an ordinary user gets there through a user namespace, in which it is
    itself and nobody else. Raises OSError where the system does not allow it.
    """
    spaces = os.CLONE_NEWNET | os.CLONE_NEWIPC
    if os.geteuid() == 0:
        os.unshare(spaces)
    else:
        uid, gid = os.geteuid(), os.getegid()
        os.unshare(spaces | os.CLONE_NEWUSER)
        for name, content in {
            "setgroups": "deny",
            "uid_map": f"{uid} {uid} 1",
            "gid_map": f"{gid} {gid} 1",
        }.items():
            with open(f"/proc/self/{name}", "w") as out:
                out.write(content)
    # A loopback begins down, and profiler and evaluators talk to themselves over it.
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sH22x", b"lo", IFF_UP))


def _start_time() -> str:
    """In clock ticks since the machine's start."""
    with open("/proc/self/stat", "rb") as stat:
        return stat.read().rpartition(b")")[2].split()[19].decode()


if __name__ == "__main__":
    main()
