"""From a profile request to what the GPU side is told, for its fingerprint and for every attempt."""

from __future__ import annotations

from leaderboards.task_config import build_job_config
from profiling.models import ProfileRequest
from runners.gpu.contract import CaptureOptions, JobConfig, Mode, config_sha256
from runners.registry import GpuType

# The kind of these jobs: `Job.kind`.
KIND = "profile"


def profile_config(
    request: ProfileRequest, source_text: str, *, gpu: GpuType, job_id: str, attempt: int
) -> JobConfig:
    """The same request gives the same config but for `job_id` and `attempt`."""
    assert request.revision is not None
    return build_job_config(
        request.revision,
        source_text,
        job_id=job_id,
        attempt=attempt,
        mode=Mode.PROFILE,
        gpu=gpu,
        selected=chosen_benchmarks(request),
        seed=request.seed,
        capture=CaptureOptions(
            ncu_kernel_name=request.ncu_kernel_name,
            ncu_kernel_name_base=request.ncu_kernel_name_base,
            ncu_launch_count=request.ncu_launch_count,
            ncu_version=request.ncu_version_wanted or None,
        ),
    )


def fingerprint(request: ProfileRequest, source_text: str, *, gpu: GpuType) -> str:
    """Tells code, evaluator, shapes and options apart (wire-contract.md, 17.4), and no attempts."""
    config = profile_config(request, source_text, gpu=gpu, job_id="", attempt=1)
    return config_sha256(config, request.capture_options)


def chosen_benchmarks(request: ProfileRequest) -> tuple[int, ...]:
    """Zero-based indexes into the task's benchmarks, ascending."""
    return tuple(sorted(int(index) for index in request.benchmark_specs))
