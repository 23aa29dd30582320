"""Jobs of the kinds "test", "benchmark" and "leaderboard": the passes of a submission."""

from __future__ import annotations

from leaderboards import audit
from leaderboards.acceptance import queue_secret_pass
from leaderboards.models import SubmissionJob
from leaderboards.preparation import select_benchmarks
from leaderboards.rejection import note_rejection
from leaderboards.stages import PassFacts, judge_pass, keep_stages, lock_submission
from leaderboards.standings import settle_standing_of
from leaderboards.task_config import build_job_config, gpu_to_run_on
from leaderboards.verbs import for_move
from runners.gpu.contract import JobConfig, Mode
from runners.gpu.envelope import Envelope
from runners.handlers import Results
from runners.models import Artifact, Job, JobEvent

# Profiles have a handler of their own, in the app above.
KINDS = (Mode.TEST, Mode.BENCHMARK, Mode.LEADERBOARD)


class SubmissionJobHandler:
    """A `runners.handlers.JobHandler`."""

    def build_config(self, job: Job) -> JobConfig:
        """Raises RunnerFault when what was accepted can no longer be run here."""
        of = _pass_of(job)
        submission = of.submission
        task, mode = submission.revision.definition, Mode(submission.mode)
        return build_job_config(
            submission.revision,
            submission.source.text,
            job_id=str(job.pk),
            attempt=job.attempt,
            mode=mode,
            gpu=gpu_to_run_on(job, submission.source),
            selected=select_benchmarks(task, mode),
            seed=submission.leaderboard.secret_seed if of.secret else task.seed,
            capture=None,
        )

    def code_to_check(self, job: Job) -> str | None:
        """The secret pass runs what its public pass was let through with."""
        of = _pass_of(job)
        if of.secret or of.submission.mode == Mode.TEST:
            return None
        return of.submission.source.text

    def moved(self, job: Job, event: JobEvent) -> None:
        of = SubmissionJob.objects.select_related("submission").get(job=job)
        note_rejection(job, of.submission_id)
        audit.record_move(for_move(event), of.submission, job, event, secret=of.secret)

    def read_results(self, job: Job, envelope: Envelope) -> Results:
        facts = judge_pass(_pass_of(job), envelope.outcome)
        if facts.failure is None:
            return Results(facts=facts)
        return Results(
            facts=facts,
            failure_kind=facts.failure.kind,
            failure_message=facts.failure.message,
        )

    def keep_results(self, job: Job, results: Results, artifacts: dict[str, Artifact]) -> None:
        """The stages; a good public pass for the leaderboard is followed by the secret one."""
        facts: PassFacts = results.facts
        of = _pass_of(job)
        submission = lock_submission(of)
        keep_stages(facts.runs)
        if of.secret:
            settle_standing_of(submission)
        ranks = submission.mode == Mode.LEADERBOARD and facts.passed and not of.secret
        stands = submission.deleted_at is None and not submission.verdict
        if ranks and stands and not submission.passes.filter(secret=True).exists():
            queue_secret_pass(of)


def _pass_of(job: Job) -> SubmissionJob:
    return SubmissionJob.objects.select_related(
        "job", "submission__leaderboard", "submission__revision", "submission__source"
    ).get(job=job)
