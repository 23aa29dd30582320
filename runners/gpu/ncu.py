"""Nsight Compute's command line: find it, check its version, build the capture's arguments."""

from __future__ import annotations

import re
import shutil
from dataclasses import dataclass
from pathlib import Path

from runners.gpu import process
from runners.gpu.context import Context
from runners.gpu.contract import CaptureOptions, FailureKind
from runners.gpu.failures import Failed

DEFAULT_LAUNCH_COUNT = 10
DEFAULT_NAME_BASE = "function"
NAME_BASES = ("function", "demangled", "mangled")
VERSION_S = 60

OURS = "This is a fault of the service, not of the submission."


@dataclass(frozen=True, slots=True, kw_only=True)
class Profiler:
    path: str
    version: str  # for example "2025.2.1.0"


def find_profiler(context: Context, wanted: str | None) -> Profiler:
    """The ncu on PATH. Raises Failed when it is missing, broken, or not of the version wanted."""
    path = shutil.which("ncu")
    if path is None:
        raise Failed(
            FailureKind.PROFILER_MISSING,
            f"ncu was not found on the machine with the GPU. {OURS}",
        )
    finished = process.run(
        [path, "--version"],
        cwd=context.workspace.tmp,
        env=context.environment(),
        bounds=context.bounds(VERSION_S),
        identity=context.identity,
    )
    match = re.search(r"^Version (\d[\w.]*)", finished.stdout, re.MULTILINE)
    if match is None:
        raise Failed(FailureKind.PROFILER_MISSING, f"ncu does not tell its version. {OURS}")
    version = match[1]
    if wanted and version != wanted and not version.startswith(wanted + "."):
        raise Failed(
            FailureKind.PROFILER_VERSION,
            f"ncu {wanted} is wanted, ncu {version} is installed. {OURS}",
        )
    return Profiler(path=path, version=version)


def check_options(options: CaptureOptions) -> None:
    """The server refuses these first; a value must never become an option of the profiler."""
    name, base, count = (
        options.ncu_kernel_name,
        options.ncu_kernel_name_base,
        options.ncu_launch_count,
    )
    if name is not None and (not name or name.startswith("-") or not name.isprintable()):
        raise Failed(FailureKind.BAD_CONFIG, f"ncu_kernel_name is not usable: {name[:80]!r}.")
    if base is not None and base not in NAME_BASES:
        raise Failed(FailureKind.BAD_CONFIG, f"ncu_kernel_name_base is unknown: {base[:80]!r}.")
    if count is not None and count < 1:
        raise Failed(FailureKind.BAD_CONFIG, f"ncu_launch_count must be 1 or more, not {count}.")


def launch_count(options: CaptureOptions) -> int:
    return options.ncu_launch_count or DEFAULT_LAUNCH_COUNT


def capture_command(
    profiler: Profiler, options: CaptureOptions, *, report: Path, log: Path, program: list[str]
) -> list[str]:
    """The flags of wire-contract.md, section 17.2, and two that keep the submission out.

    The log file holds ncu's own messages apart from what the program prints, and no config file
    that a submission left in HOME changes what is captured.
    """
    command = [
        profiler.path,
        *("--config-file", "off"),
        *("--set", "full"),
        *("--target-processes", "all"),
        "--nvtx",
        *("--nvtx-include", "custom_kernel/"),
        *("--import-source", "1"),
        *("--launch-count", str(launch_count(options))),
        *("--cache-control", "all"),
        *("--clock-control", "none"),
        *("--replay-mode", "kernel"),
        "--force-overwrite",
        *("--export", str(report)),
        *("--log-file", str(log)),
    ]
    if options.ncu_kernel_name is not None:
        command += ["--kernel-name", options.ncu_kernel_name]
    if options.ncu_kernel_name_base is not None:
        command += ["--kernel-name-base", options.ncu_kernel_name_base]
    return [*command, "--", *program]
