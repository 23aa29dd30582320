"""GPU types that are paused: their machines cannot do the work, whoever asks (FR-09)."""

from __future__ import annotations

from django.utils import timezone

from runners.models import GpuPause


def pause_gpu(gpu: str, *, kind: str, reason: str, actor_label: str) -> GpuPause:
    """Start no more jobs on this GPU type until somebody resumes it; queued ones stay queued."""
    pause, _ = GpuPause.objects.get_or_create(
        gpu=gpu,
        resumed_at=None,
        defaults={"kind": kind, "reason": reason, "paused_by": actor_label},
    )
    return pause


def resume_gpu(gpu: str, *, actor_label: str) -> bool:
    """Start jobs again; False when it was not paused."""
    return bool(
        GpuPause.objects.filter(gpu=gpu, resumed_at=None).update(
            resumed_at=timezone.now(), resumed_by=actor_label
        )
    )


def paused_gpus() -> dict[str, GpuPause]:
    """The pauses in force, by GPU type."""
    return {pause.gpu: pause for pause in GpuPause.objects.filter(resumed_at=None)}
