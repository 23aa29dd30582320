"""Which GPUs are offered, and which runner serves each: configuration, never failover."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

RUNNERS = ("modal", "local", "recorded", "fake")


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuType:
    """One GPU type of the configuration `GPU_TYPES`.

    `sm` is what nvcc compiles for ("90a"), empty where there is no GPU. `ncu` says whether
    profiling is offered; `max_in_flight` is how many of its jobs may run at once.
    """

    name: str
    runner: str
    sm: str = ""
    ncu: bool = False
    device_count: int = 1
    max_in_flight: int = 1


def read_gpu_types(value: Any) -> dict[str, GpuType]:
    """GPU_TYPES as configured: {name: {runner, sm, ncu, ...}}. Raises ValueError with the place."""
    if not isinstance(value, dict):
        raise TypeError("GPU_TYPES must be a JSON object of GPU names")
    found = {}
    for name, fields in value.items():
        try:
            gpu = GpuType(name=name, **fields)
        except TypeError as error:
            raise ValueError(f"GPU_TYPES, {name}: {error}") from error
        if gpu.runner not in RUNNERS:
            raise ValueError(f"GPU_TYPES, {name}: no runner {gpu.runner!r}, only {RUNNERS}")
        if gpu.max_in_flight < 1 or gpu.device_count < 1:
            raise ValueError(f"GPU_TYPES, {name}: counts begin at 1")
        found[name] = gpu
    return found


def find_gpu(gpu_types: dict[str, GpuType], name: str) -> GpuType | None:
    """A GPU by its name in any case, as clients type it."""
    return next((gpu for gpu in gpu_types.values() if gpu.name.lower() == name.lower()), None)
