"""What the machine says of itself. Its host name stays its own affair and is left empty."""

from __future__ import annotations

import platform
import shutil
from pathlib import Path

from runners.gpu import process
from runners.gpu.context import Context, python_program
from runners.gpu.contract import System

QUERY_S = 60
GPU_NAMES = ["--query-gpu=name", "--format=csv,noheader"]
# Reads the version without importing torch, which would take seconds.
TORCH_VERSION = "import importlib.metadata as m; print(m.version('torch'))"


def describe(context: Context) -> System:
    """Empty text for whatever can't be found out."""
    nvidia_smi = shutil.which("nvidia-smi")
    gpus = _lines(context, [nvidia_smi, *GPU_NAMES]) if nvidia_smi else []
    torch = _lines(context, [python_program(), "-c", TORCH_VERSION])
    return System(
        gpu=gpus[0] if gpus else "",
        device_count=len(gpus),
        cpu=_cpu(),
        runtime="CUDA" if gpus else "",
        platform=platform.platform(),
        torch=torch[0] if torch else "",
    )


def _lines(context: Context, argv: list[str]) -> list[str]:
    finished = process.run(
        argv,
        cwd=context.workspace.tmp,
        env=context.environment(),
        bounds=context.bounds(QUERY_S),
        identity=context.identity,
    )
    return finished.stdout.splitlines() if finished.exit_code == 0 else []


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(errors="replace").splitlines()
    except OSError:
        return ""
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()
