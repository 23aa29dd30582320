"""Copying, timing and marking calls on an NVIDIA GPU, with torch."""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import torch

L2_FLUSH_BYTES = 256 * 2**20


def copy(data: Any) -> Any:
    if isinstance(data, torch.Tensor):
        return data.clone()
    return type(data)(copy(item) for item in data)


def synchronize() -> None:
    torch.cuda.synchronize()


def time_call(kernel: Callable, data: Any) -> tuple[Any, float]:
    """The result and the time in nanoseconds, with the L2 cache flushed before the call."""
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    torch.empty(L2_FLUSH_BYTES, dtype=torch.uint8, device="cuda").zero_()
    torch.cuda.synchronize()
    start.record()
    output = kernel(data)
    end.record()
    torch.cuda.synchronize()
    return output, start.elapsed_time(end) * 1e6


@contextlib.contextmanager
def profiling_range(name: str) -> Iterator[None]:
    """The NVTX push/pop range that ncu's filter selects."""
    torch.cuda.nvtx.range_push(name)
    try:
        yield
    finally:
        torch.cuda.nvtx.range_pop()


def is_device_failure(error: Exception) -> bool:
    return isinstance(error, RuntimeError) and "CUDA error" in str(error)
