"""From a task revision and a source text to what the GPU side is told."""

from __future__ import annotations

from django.conf import settings

from leaderboards.models import SubmissionSource, TaskRevision
from leaderboards.task_definition import SUBMISSION_MARK, TaskDefinition
from runners.exceptions import RunnerFault
from runners.gpu.contract import CaptureOptions, JobConfig, Limits, Mode
from runners.models import Job
from runners.registry import GpuType, find_gpu


def build_job_config(
    revision: TaskRevision,
    source_text: str,
    *,
    job_id: str,
    attempt: int,
    mode: Mode,
    gpu: GpuType,
    selected: tuple[int, ...],
    seed: int | None,
    capture: CaptureOptions | None,
) -> JobConfig:
    """The same revision, text and GPU always give the same fingerprint (`config_sha256`).

    `selected` is what `preparation.select_benchmarks` gave; `capture` is None outside profile mode.
    """
    task = revision.definition
    files = {
        name: source_text if text == SUBMISSION_MARK else text for name, text in task.files.items()
    }
    compiled = files if task.lang == "py" else {name: files[name] for name in task.sources}
    return JobConfig(
        job_id=job_id,
        attempt=attempt,
        mode=mode,
        lang=task.lang,
        main=task.main,
        sources=compiled,
        headers=None
        if task.lang == "py"
        else {name: text for name, text in files.items() if name not in compiled},
        include_dirs=task.include_dirs,
        defines=task.defines,
        compile_flags=task.compile_flags,
        arch=gpu.sm or None,
        tests=task.tests,
        benchmarks=task.benchmarks,
        selected=selected,
        seed=seed,
        limits=_limits(task),
        capture=capture,
    )


def gpu_to_run_on(job: Job, source: SubmissionSource) -> GpuType:
    """Raises RunnerFault when what was accepted can no longer be run here."""
    gpu = find_gpu(settings.GPU_TYPES, job.gpu)
    if gpu is None:
        raise RunnerFault(
            f"{job.gpu} is no longer offered here", kind="gpu_not_offered", retryable=False
        )
    if source.purged_at is not None:
        raise RunnerFault(
            "the source that was sent was deleted", kind="source_deleted", retryable=False
        )
    return gpu


def _limits(task: TaskDefinition) -> Limits:
    return Limits(
        compile_s=settings.COMPILE_LIMIT_S,
        test_s=task.test_timeout,
        benchmark_s=task.benchmark_timeout,
        ranked_s=task.ranked_timeout,
        capture_s=settings.CAPTURE_LIMIT_S,
        export_s=settings.EXPORT_LIMIT_S,
        job_s=settings.JOB_LIMIT_S,
    )
