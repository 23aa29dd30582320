"""A job handler without an app above: jobs of kind "test"."""

from __future__ import annotations

import time
from pathlib import Path

from django.conf import settings

from runners.gpu.contract import JobConfig, Mode
from runners.handlers import Results


def wait_while_held(what: str) -> None:
    """As long as there is a file hold-`what`."""
    while (Path(settings.DATA_DIR) / f"hold-{what}").exists():
        time.sleep(0.05)


class TestJobHandler:
    __test__ = False

    def build_config(self, job):
        wait_while_held("config")
        return JobConfig(
            job_id=str(job.pk),
            attempt=job.attempt,
            mode=Mode.PROFILE,
            lang="py",
            main="eval.py",
            sources={"eval.py": "", "submission.py": ""},
            benchmarks=({"size": 1}, {"size": 2}),
            selected=(0, 1),
        )

    def code_to_check(self, job):
        return None

    def moved(self, job, event):
        pass

    def read_results(self, job, envelope):
        wait_while_held("collecting")
        failure = envelope.outcome.failure
        if failure:
            return Results(facts={}, failure_kind=failure.kind, failure_message=failure.message)
        return Results(facts=dict(envelope.outcome.runs))

    def keep_results(self, job, results, artifacts):
        assert all(artifact.job_id == job.pk for artifact in artifacts.values())
