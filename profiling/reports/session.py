"""What a report says of itself: the profiler that made it and its settings, CUDA, driver, GPUs.

Found in the session blocks of all real reports looked at (2022.3 to 2025.2) and named by the
descriptors inside the `ncu_report` library, which itself does not give them out. Numbers of
fields, in package NV.Profiler.Messages:

    ReportSessionDetails: HostSystemInfo=3, TargetSystemInfo=4, DeviceAttributes=6, VersionInfo=8,
        ProfilerSettings=10, ProfilerCmdline=11
    SystemInfo: OSName=1, Processor=3, Architecture=4
    DeviceAttributes: ID=1, Name=2
    VersionInfo: Provider=1, Version=2

Host, user, addresses and environment stand there as well; they are not read. Of the command line
nothing is kept but known flags (`settings.py`). Reports of 2025.1 and later were seen without a
driver version.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from profiling.reports import protobuf
from profiling.reports.settings import CaptureSettings, from_command_line, from_record, merged
from profiling.reports.text import storable
from runners.gpu import wire
from runners.gpu.report_framing import session_details

HOST, TARGET, DEVICE_ATTRIBUTES, VERSION_INFO, SETTINGS, COMMAND_LINE = 3, 4, 6, 8, 10, 11
OS_NAME, PROCESSOR, ARCHITECTURE = 1, 3, 4
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
    # Stands with the launches: filled in by reader.py, "10.0".
    compute_capability: str = ""
    # Of the machine with the GPU; never its name.
    os: str = ""
    architecture: str = ""
    processor: str = ""
    settings: CaptureSettings = field(default_factory=CaptureSettings)

    @property
    def ncu_release(self) -> str:
        """As it is asked for, "2025.2.1"; empty if the report does not name exactly one."""
        found = re.fullmatch(r"(\d+\.\d+\.\d+)(?:\.\d+)?(?: \([^,]*\))*", self.ncu_version)
        return found[1] if found else ""

    def to_json(self) -> dict[str, Any]:
        plain: dict[str, Any] = wire.encode(self)
        return plain


class _Heard:
    """What the blocks of a report said so far."""

    def __init__(self) -> None:
        self.versions: dict[str, list[str]] = {PROFILER: [], CUDA: [], DRIVER: []}
        self.gpus: list[str] = []
        self.systems: dict[int, dict[int, int | bytes]] = {HOST: {}, TARGET: {}}
        self.record: CaptureSettings | None = None
        self.command_line: CaptureSettings | None = None

    def hear(self, number: int, message: bytes) -> None:
        if number == COMMAND_LINE:
            self.command_line = from_command_line(protobuf.text(message))
        elif number == SETTINGS:
            self.record = from_record(message)
        elif number in self.systems:
            self.systems[number] |= protobuf.by_number(message)
        elif number == DEVICE_ATTRIBUTES:
            self.gpus.append(protobuf.text(protobuf.by_number(message).get(NAME_OF_DEVICE)))
        elif number == VERSION_INFO:
            said = protobuf.by_number(message)
            if (provider := protobuf.text(said.get(PROVIDER))) in self.versions:
                self.versions[provider].append(protobuf.text(said.get(VERSION)))

    def system(self, number: int) -> str:
        """Of the target where it says so, else of the host, which is usually the same."""
        said = protobuf.text((self.systems[TARGET] or self.systems[HOST]).get(number))
        return storable(said, VERSION_CHARS)

    def settings(self) -> CaptureSettings:
        if self.record is None:
            return self.command_line or CaptureSettings()
        return merged(self.record, self.command_line or CaptureSettings())


def read_session(path: Path) -> Session:
    """Raises FramingError where the blocks can't be walked; a damaged detail is left out."""
    heard = _Heard()
    for details in session_details(path):
        for number, message in protobuf.fields(details):
            if isinstance(message, bytes):
                heard.hear(number, message)
    return Session(
        ncu_version=joined(heard.versions[PROFILER], VERSION_CHARS),
        cuda_version=joined(heard.versions[CUDA], VERSION_CHARS),
        driver_version=joined(heard.versions[DRIVER], VERSION_CHARS),
        gpu_name=joined(heard.gpus, GPU_CHARS),
        os=heard.system(OS_NAME),
        architecture=heard.system(ARCHITECTURE),
        processor=heard.system(PROCESSOR),
        settings=heard.settings(),
    )


def joined(values: Iterable[str], chars: int) -> str:
    return storable(", ".join(dict.fromkeys(value for value in values if value)), chars)
