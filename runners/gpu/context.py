"""What every step of a job shares: its config, its folders, and what is left of its time."""

from __future__ import annotations

import os
import shutil
import time
from dataclasses import dataclass

from runners.gpu.contract import FailureKind, JobConfig
from runners.gpu.failures import Failed
from runners.gpu.process import Bounds, Identity
from runners.gpu.workdir import Workspace

# The whole environment of a stranger's program: these, and what `environment` adds.
PASSED = ("PATH", "LANG", "LC_ALL", "LC_CTYPE", "LD_LIBRARY_PATH", "LIBRARY_PATH", "CPATH")
PASSED_PREFIXES = ("CUDA_", "NVIDIA_")

# A capture that ends with the job's time must still be exported: the provider's own limit lies
# 120 s beyond the job's, and there are two exports.
EXPORT_RESERVE_S = 40.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowance:
    """Seconds for a step, and what it is called when they were not enough."""

    seconds: float
    kind: FailureKind


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    config: JobConfig
    workspace: Workspace
    identity: Identity | None
    deadline: float  # of the job as a whole, by time.monotonic()
    family_bytes: int | None = None  # what the machine has for a program and its children

    def allow(self, limit_s: float, kind: FailureKind) -> Allowance:
        """At most `limit_s`. Raises Failed (job time limit) when the job's time is used up."""
        left = self.deadline - time.monotonic()
        if left <= 0:
            raise Failed(
                FailureKind.JOB_TIME_LIMIT,
                f"Not run: the time of the whole job, {self.config.limits.job_s:g} s, was used up.",
            )
        if left < limit_s:
            return Allowance(seconds=left, kind=FailureKind.JOB_TIME_LIMIT)
        return Allowance(seconds=limit_s, kind=kind)

    def export_seconds(self) -> float:
        left = self.deadline - time.monotonic()
        return min(self.config.limits.export_s, max(left, EXPORT_RESERVE_S))

    def bounds(self, seconds: float, *, grace_s: float = 0) -> Bounds:
        limits = self.config.limits
        return Bounds(
            seconds=seconds,
            output_bytes=limits.output_bytes,
            memory_bytes=limits.memory_bytes,
            family_bytes=self.family_bytes,
            file_bytes=limits.file_bytes,
            processes=limits.processes,
            grace_s=grace_s,
        )

    def environment(self, **more: str) -> dict[str, str]:
        """Built from nothing, so that no secret of the harness's own environment is in it."""
        passed = {
            name: value
            for name, value in os.environ.items()
            if name in PASSED or name.startswith(PASSED_PREFIXES)
        }
        folders = {"HOME": str(self.workspace.home), "TMPDIR": str(self.workspace.tmp)}
        return passed | folders | more


def python_program() -> str:
    """The interpreter of evaluators: it sees installed packages, which the harness does not.

    Raises Failed when there is none.
    """
    wanted = os.environ.get("KERNELBOT_PYTHON") or "python3"
    if shutil.which(wanted) is None:
        raise Failed(
            FailureKind.GPU_SIDE_CRASHED,
            "The Python for evaluators was not found. This is a fault of the service.",
        )
    return wanted
