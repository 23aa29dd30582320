"""What a report says of itself: the profiler that made it, CUDA, driver and GPUs.

Found in the session blocks of all real reports looked at (2022.3 to 2025.2) and named by the
descriptors inside the `ncu_report` library, which itself does not give them out. Numbers of
fields, in package NV.Profiler.Messages:

    ReportSessionDetails: DeviceAttributes=6, VersionInfo=8
    DeviceAttributes: ID=1, Name=2
    VersionInfo: Provider=1, Version=2

Host, user, addresses, environment and command line stand there as well; they are not read.
Reports of 2025.1 and later were seen without a driver version.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from profiling.reports.child import storable
from runners.gpu.report_framing import session_details

DEVICE_ATTRIBUTES, VERSION_INFO = 6, 8
NAME_OF_DEVICE, PROVIDER, VERSION = 2, 1, 2

PROFILER, CUDA, DRIVER = "Nsight Compute Target", "CUDA Version", "Display Driver Version"

VERSION_CHARS = 100
GPU_CHARS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """Empty text is what the report does not say; values that differ are joined by ", "."""

    ncu_version: str = ""  # "2025.2.1.0 (build 35987062) (public-release)"
    cuda_version: str = ""
    driver_version: str = ""
    gpu_name: str = ""

    @property
    def ncu_release(self) -> str:
        """As it is asked for, "2025.2.1"; empty if the report does not name exactly one."""
        found = re.fullmatch(r"(\d+\.\d+\.\d+)(?:\.\d+)?(?: \([^,]*\))*", self.ncu_version)
        return found[1] if found else ""


def read_session(path: Path) -> Session:
    """Raises FramingError where the blocks can't be walked; a damaged detail is left out."""
    versions: dict[str, list[str]] = {PROFILER: [], CUDA: [], DRIVER: []}
    gpus: list[str] = []
    for details in session_details(path):
        for number, message in _messages(details):
            texts = dict(_messages(message))
            if number == DEVICE_ATTRIBUTES:
                gpus.append(_text(texts.get(NAME_OF_DEVICE, b"")))
            elif (
                number == VERSION_INFO and (provider := _text(texts.get(PROVIDER, b""))) in versions
            ):
                versions[provider].append(_text(texts.get(VERSION, b"")))
    return Session(
        ncu_version=_joined(versions[PROFILER], VERSION_CHARS),
        cuda_version=_joined(versions[CUDA], VERSION_CHARS),
        driver_version=_joined(versions[DRIVER], VERSION_CHARS),
        gpu_name=_joined(gpus, GPU_CHARS),
    )


def _text(value: bytes) -> str:
    return value.decode(errors="replace")


def _joined(values: list[str], chars: int) -> str:
    return storable(", ".join(dict.fromkeys(value for value in values if value)), chars)


def _messages(message: bytes) -> Iterator[tuple[int, bytes]]:
    """The fields of `message` that are text or messages, by number; ends where it is damaged."""
    at = 0
    while at < len(message):
        key, at = _varint(message, at)
        number, wire_type = key >> 3, key & 7
        if wire_type == 0:
            _, at = _varint(message, at)
        elif wire_type == 2:
            length, at = _varint(message, at)
            if at + length <= len(message):
                yield number, message[at : at + length]
            at += length
        elif wire_type in (1, 5):
            at += 8 if wire_type == 1 else 4
        else:
            return


def _varint(message: bytes, at: int) -> tuple[int, int]:
    """A number and where it ends; past the end of `message` for one that is cut."""
    value = 0
    for shift in range(0, 70, 7):
        if at >= len(message):
            break
        value |= (message[at] & 0x7F) << shift
        at += 1
        if message[at - 1] < 0x80:
            return value, at
    return 0, len(message) + 1
