"""Bring a finished run home: check its envelope, store the archives, let the handler judge."""

from __future__ import annotations

import logging
import re
from pathlib import Path

from django.conf import settings
from django.db import transaction

from runners.artifacts import ArtifactConflict, store_artifact
from runners.dispatcher.flight import Flight
from runners.exceptions import LostRace, RunnerFault
from runners.gpu import envelope
from runners.gpu.contract import CaptureRecord, FailureKind
from runners.gpu.envelope import Envelope, EnvelopeError
from runners.handlers import Results, handler_of
from runners.models import Artifact, Job
from runners.pauses import pause_gpu
from runners.scratch import scratch_folder
from runners.states import JobStatus
from runners.transitions import move

logger = logging.getLogger(__name__)

# Run keys come from beside a stranger's code and become names of files.
RUN_KEY = re.compile(r"test|benchmark|leaderboard|profile\.[0-9]{1,6}")
# The machine cannot do the work, whoever asks: further jobs would only be burnt (FR-09).
PAUSING = frozenset(
    {
        FailureKind.COUNTERS_NOT_PERMITTED,
        FailureKind.PROFILER_MISSING,
        FailureKind.PROFILER_VERSION,
    }
)
LOGGED_BYTES = 64


async def collect(flight: Flight, path: Path) -> float | None:
    """RUNNING to its end by way of COLLECTING; harmless to repeat after a crash at any point."""
    job, holder = flight.job, flight.holder
    try:
        if job.status == JobStatus.RUNNING:
            await flight.move(JobStatus.COLLECTING)
        results, artifacts = await holder.slow(_read, job, path)
        await holder.db(_finish, job, results, artifacts, holder.owner)
    except LostRace:
        raise
    except EnvelopeError as error:
        logger.exception("%s: a bad envelope, it begins with %r", job, _first_bytes(path))
        await flight.end(
            JobStatus.FAILED,
            kind="bad_envelope",
            message=f"What came back from the GPU could not be read, which is not the "
            f"submission's fault ({error}). Send it again; if this comes back, tell the operators.",
        )
    except ArtifactConflict:
        logger.exception("%s: the provider gave another result than before", job)
        await flight.end(
            JobStatus.FAILED,
            kind="result_changed",
            message="The GPU provider gave two different results for this run, which is not the "
            "submission's fault. Send it again.",
        )
    except Exception:
        logger.exception("the result of %s could not be kept", job)
        fault = RunnerFault(
            "The result of this run could not be stored or read by the service.",
            kind="collect_failed",
            retryable=True,
        )
        return await flight.bear(fault, patience_s=settings.COLLECT_PATIENCE_S)
    return None


def _read(job: Job, path: Path) -> tuple[Results, dict[str, Artifact]]:
    """Artifacts by the name of their part in the envelope. Takes seconds, and no transaction."""
    size = path.stat().st_size
    if size > settings.ENVELOPE_MAX_BYTES:
        raise EnvelopeError(f"{size} bytes, at most {settings.ENVELOPE_MAX_BYTES} are read")
    checked = envelope.read(path)
    outcome = checked.outcome
    if (outcome.job_id, outcome.attempt) != (str(job.pk), job.attempt):
        raise EnvelopeError("it is the result of another run")
    artifacts = {}
    with scratch_folder("collect") as folder:
        for key, record in outcome.runs.items():
            if not RUN_KEY.fullmatch(key):
                raise EnvelopeError(f"unknown run {key[:80]!r}")
            if record.capture:
                target = Path(folder) / f"{key}.zip"
                artifacts[record.capture.archive] = _store(job, checked, record.capture, target)
    return handler_of(job).read_results(job, checked), artifacts


def _store(job: Job, checked: Envelope, capture: CaptureRecord, target: Path) -> Artifact:
    part = checked.part(capture.archive)
    if part is None or (part.size, part.sha256) != (capture.archive_bytes, capture.archive_sha256):
        raise EnvelopeError("size or sha256 of an archive are not those of its part")
    checked.extract(part.name, target)
    artifact = store_artifact(
        job,
        target.name,
        target,
        size=part.size,
        sha256=part.sha256,
        content_type="application/zip",
    )
    target.unlink()
    return artifact


def _finish(job: Job, results: Results, artifacts: dict[str, Artifact], owner: str) -> None:
    """What was found and the job's end, in one transaction."""
    label, kind = f"dispatcher {owner}", results.failure_kind
    with transaction.atomic():
        handler_of(job).keep_results(job, results, artifacts)
        if kind in PAUSING:
            pause_gpu(job.gpu, kind=kind, reason=results.failure_message, actor_label=label)
        move(
            job,
            JobStatus.FAILED if kind else JobStatus.SUCCEEDED,
            actor_label=label,
            reason=results.failure_message,
            held_by=owner,
            failure_kind=kind,
            failure_message=results.failure_message,
        )


def _first_bytes(path: Path) -> bytes:
    try:
        with path.open("rb") as source:
            return source.read(LOGGED_BYTES)
    except OSError:
        return b""
