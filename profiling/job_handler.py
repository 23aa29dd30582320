"""Jobs of kind "profile": their config, their audit rows, and what is kept of their results."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from leaderboards import audit
from leaderboards.models import Run, Submission
from leaderboards.rejection import note_rejection
from leaderboards.stages import keep_stages
from leaderboards.task_config import gpu_to_run_on
from profiling.capture_facts import CaptureFacts, judge_capture, keep_details, request_verdict
from profiling.configs import chosen_benchmarks, profile_config
from profiling.models import Capture, ProfileRequest
from profiling.verbs import for_move
from runners.gpu import wire
from runners.gpu.contract import Fault, JobConfig
from runners.gpu.envelope import Envelope
from runners.handlers import Results
from runners.models import Artifact, Job, JobEvent
from runners.scratch import scratch_folder

ORIGIN_CHARS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileFacts:
    """What is kept of a job: one of `captures` per chosen benchmark."""

    captures: tuple[CaptureFacts, ...]
    system: dict[str, Any]
    origin: str

    @property
    def verdict(self) -> ProfileRequest.Verdict:
        return request_verdict([(each.failed, each.columns["verdict"]) for each in self.captures])


class ProfileJobHandler:
    """A `runners.handlers.JobHandler`."""

    def build_config(self, job: Job) -> JobConfig:
        """Raises RunnerFault when what was accepted can no longer be run here."""
        request = _request_of(job)
        assert request.submission is not None
        source = request.submission.source
        gpu = gpu_to_run_on(job, source)
        return profile_config(
            request, source.text, gpu=gpu, job_id=str(job.pk), attempt=job.attempt
        )

    def code_to_check(self, job: Job) -> str | None:
        request = _request_of(job)
        assert request.submission is not None
        return request.submission.source.text

    def moved(self, job: Job, event: JobEvent) -> None:
        request = ProfileRequest.objects.only("pk", "submission_id").get(job=job)
        assert request.submission_id is not None
        note_rejection(job, request.submission_id)
        audit.record_move(for_move(event), request, job, event)

    def read_results(self, job: Job, envelope: Envelope) -> Results:
        """Takes seconds per benchmark. When the service failed all of them, so did the job."""
        request = _request_of(job)
        with scratch_folder("reports") as folder:
            captures = tuple(
                judge_capture(request, job, index, envelope, Path(folder))
                for index in chosen_benchmarks(request)
            )
        facts = ProfileFacts(
            captures=captures,
            system=wire.encode(envelope.outcome.system),
            origin=envelope.outcome.origin[:ORIGIN_CHARS],
        )
        if any(capture.columns["failure_fault"] != Fault.SERVICE for capture in captures):
            return Results(facts=facts)
        messages = dict.fromkeys(capture.columns["failure_message"] for capture in captures)
        return Results(
            facts=facts,
            failure_kind=captures[0].columns["failure_kind"],
            failure_message=" ".join(messages),
        )

    def keep_results(self, job: Job, results: Results, artifacts: dict[str, Artifact]) -> None:
        facts: ProfileFacts = results.facts
        request = ProfileRequest.objects.get(job=job)
        for capture in facts.captures:
            row, _ = Capture.objects.update_or_create(
                request=request,
                benchmark_index=capture.benchmark_index,
                defaults={
                    **capture.columns,
                    "artifact": artifacts[capture.archive] if capture.archive else None,
                },
            )
            keep_details(row, capture.details)
        keep_stages(_stages(request, job, facts))
        request.system = facts.system
        request.result_origin = facts.origin
        request.verdict = facts.verdict
        request.save(update_fields=["system", "result_origin", "verdict"])


def _request_of(job: Job) -> ProfileRequest:
    return ProfileRequest.objects.select_related("revision", "submission__source").get(job=job)


def _stages(request: ProfileRequest, job: Job, facts: ProfileFacts) -> list[Run]:
    """The captures as runs of the submission, as those of every other mode are kept."""
    assert request.submission_id is not None
    assert request.leaderboard_id is not None
    return [
        Run(
            submission_id=request.submission_id,
            job=job,
            leaderboard_id=request.leaderboard_id,
            user_id=request.user_id,
            gpu=request.gpu,
            mode=f"profile.{capture.benchmark_index}",
            passed=not capture.failed and capture.columns["passed"] is True,
            system=facts.system,
            **{name: capture.columns[name] for name in _SHARED_COLUMNS},
        )
        for capture in facts.captures
    ]


_SHARED_COLUMNS = (
    "started_at",
    "finished_at",
    "run",
    "compilation",
    "failure_kind",
    "failure_message",
)


def jobs_of_profiles(submission: Submission) -> Iterable[Job]:
    """The jobs of a submission's profiles, re-runs among them."""
    return Job.objects.filter(profile_request__submission=submission)
