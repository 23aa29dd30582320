"""Submissions that a real dispatcher runs, on a fake GPU that answers what the test wrote."""

from __future__ import annotations

import pytest
from django.test import Client

from leaderboards.models import Submission
from leaderboards.submitting import SubmissionOrder, submit
from runners.backends.fake import FakeRunner
from runners.backends.fake_plan import Plan
from runners.gpu import envelope
from runners.gpu.contract import (
    CompileResult,
    Failure,
    FailureKind,
    JobOutcome,
    Mode,
    RunRecord,
    RunResult,
    System,
)
from runners.states import FINAL
from tests.conftest import make_person
from tests.runners.conftest import Steps

START, END = "2026-11-30T12:00:00+00:00", "2026-11-30T12:00:07+00:00"
MEANS = {"benchmark-count": "1", "benchmark.0.spec": "size: 1024", "benchmark.0.mean": "2000000"}
BROKEN_BUILD = CompileResult(
    nvcc_found=True,
    nvcc_version="release 12.8",
    success=False,
    command="nvcc submission.cu -o eval.out",
    stdout="",
    stderr='submission.cu(12): error: identifier "blok" is undefined',
    exit_code=2,
)


def client_of(name="alice"):
    return Client(headers={"X-Popcorn-Cli-Id": f"{name}-cli-id"})


def a_stage(*, passed=True, result=None, **fields) -> RunRecord:
    run = RunResult(
        success=True,
        passed=passed,
        command="python3 eval.py test cases.txt",
        stdout="out",
        stderr="",
        exit_code=0 if passed else 112,
        duration=7.0,
        result=(result or {}) | {"check": "pass" if passed else "fail"},
    )
    return RunRecord(**{"start": START, "end": END, "run": run} | fields)


def good_stages(**changed) -> dict[str, RunRecord]:
    """All three stages of leaderboard mode; 2 ms."""
    stages = {
        "test": a_stage(result={"test-count": "1", "test.0.status": "pass"}),
        "benchmark": a_stage(result=MEANS),
        "leaderboard": a_stage(result=MEANS),
    }
    return {name: stage for name, stage in (stages | changed).items() if stage is not None}


def a_failure(kind: FailureKind, message="Why it failed.", **fields) -> RunRecord:
    failure = Failure(kind=kind, message=message)
    return RunRecord(**{"start": START, "end": END, "failure": failure} | fields)


@pytest.fixture
def fake(settings, tmp_path):
    settings.FAKE_RUNNER_DIR = tmp_path / "fake"
    return FakeRunner()


@pytest.fixture
def dispatcher(db, fake, settings):
    settings.POLL_EVERY_S = 0.01
    settings.RETRY_DELAY_S = 0
    return Steps()


@pytest.fixture
def answer(fake, tmp_path):
    """What the GPU side will send for a job: its stages, and how it failed as a whole."""

    def plan(job, stages, *, run_s=0, **fields):
        target = tmp_path / f"{job.pk}.envelope"
        outcome = JobOutcome(
            job_id=str(job.pk),
            attempt=job.attempt,
            system=System(gpu="NVIDIA B200", device_count=1, runtime="CUDA", hostname="gpu-7"),
            runs=stages,
            **fields,
        )
        envelope.write(target, outcome, {})
        fake.plan(Plan(envelope=str(target), run_s=run_s), job_id=job.pk)

    return plan


@pytest.fixture
def send(alice, rowsum):
    """The public pass of a new submission of alice's to rowsum on B200, queued."""

    def call(mode=Mode.LEADERBOARD, actor=alice, **fields):
        order = {
            "leaderboard_name": "rowsum",
            "gpu_name": "B200",
            "file_name": "submission.py",
            "content": b"def custom_kernel(data):\n    return data\n",
        }
        return submit(SubmissionOrder(mode=mode, **order | fields), actor=actor)

    return call


@pytest.fixture
def run(send, answer, dispatcher):
    """A submission whose passes have run: give the stages of the public and of the secret one."""

    def call(public, secret=None, *, failure=None, **fields) -> Submission:
        first = send(**fields)
        answer(first.job, public, failure=failure)
        dispatcher.until(first.job, *FINAL)
        second = first.submission.passes.filter(secret=True).first()
        if secret is not None:
            answer(second.job, secret)
            dispatcher.until(second.job, *FINAL)
        return Submission.objects.get(pk=first.submission_id)

    return call


@pytest.fixture
def make_person_named(db):
    return make_person
