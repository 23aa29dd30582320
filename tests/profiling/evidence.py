"""Finished requests with captures, made by what makes them in service: envelope, reader, moves."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

from django.utils import timezone

from leaderboards.models import PopcornUser
from profiling.models import ProfileRequest
from runners.gpu.contract import FailureKind, RunRecord
from runners.models import Job
from runners.states import JobStatus
from runners.transitions import move
from tests.profiling.envelopes import a_failure, a_record, collect, write_envelope
from tests.profiling.orders import submit


def finish(job: Job) -> None:
    """Along the way of a good run to its end."""
    lease = {"lease_owner": "test", "lease_until": timezone.now() + timedelta(minutes=5)}
    move(job, JobStatus.STARTING, actor_label="dispatcher test", **lease)
    move(job, JobStatus.RUNNING, actor_label="dispatcher test", external_id=f"run-{job.pk}")
    move(job, JobStatus.COLLECTING, actor_label="dispatcher test")
    move(job, JobStatus.SUCCEEDED, actor_label="dispatcher test")


def archive_of(report: Path, path: Path) -> Path:
    """A capture's archive around a report that is there already."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.write(report, "profile.ncu-rep")
        archive.writestr("ncu-details.txt", "details\n")
        archive.writestr("ncu-details.csv", "a,b\n")
    return path


def finished_profile(
    actor: PopcornUser,
    folder: Path,
    archives: Mapping[int, Path],
    *,
    request: ProfileRequest | None = None,
    origin: str = "",
    record: Mapping[str, Any] | None = None,
    **order: Any,
) -> ProfileRequest:
    """A request of `actor`, or the given one, with the archives that came back by benchmark.

    The benchmarks without one failed to compile.
    """
    request = request or submit(actor, **order)
    assert request.job is not None
    runs: dict[str, RunRecord] = {}
    for index in map(int, request.benchmark_specs):
        key = f"profile.{index}"
        if index in archives:
            runs[key] = a_record(f"{key}.zip", **record or {})
        else:
            runs[key] = a_failure(FailureKind.COMPILE_FAILED, "error: no such file")
    parts = {f"profile.{index}.zip": archives[index] for index in archives}
    envelope = write_envelope(
        folder / f"envelope-{request.pk}", request.job, runs, parts, origin=origin
    )
    collect(request.job, envelope)
    finish(request.job)
    return ProfileRequest.objects.select_related("job", "user", "revision", "submission").get(
        pk=request.pk
    )
