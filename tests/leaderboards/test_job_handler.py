"""Passes of submissions from the queue to their rows, run by the real dispatcher."""

from __future__ import annotations

import pytest
from django.utils import timezone

from leaderboards.models import AuditEvent, SubmissionJob
from runners.exceptions import RunnerFault
from runners.gpu import envelope
from runners.gpu.contract import Failure, FailureKind, Mode
from runners.handlers import handler_of
from runners.models import Job
from runners.states import FINAL, JobStatus
from tests.leaderboards.conftest import BROKEN_BUILD, a_failure, a_stage, good_stages


def runs_of(submission):
    return [(run.mode, run.secret, run.passed, run.score) for run in submission.runs.all()]


def config_of(of: SubmissionJob):
    return handler_of(of.job).build_config(of.job)


# --- What the GPU side is told ---


@pytest.mark.parametrize(
    ("ranking_by", "mode", "selected"),
    [
        ("last", Mode.TEST, ()),
        ("last", Mode.BENCHMARK, (2,)),
        ("last", Mode.LEADERBOARD, (2,)),
        ("geom", Mode.BENCHMARK, (0, 1, 2)),
        ("mean", Mode.LEADERBOARD, (0, 1, 2)),
    ],
)
def test_ranking_by_last_runs_only_the_last_benchmark(
    send, make_leaderboard, ranking_by, mode, selected
):
    make_leaderboard("ranked", task={"ranking_by": ranking_by})

    config = config_of(send(mode, leaderboard_name="ranked"))

    assert (config.mode, config.selected) == (mode, selected)
    assert config.sources["submission.py"].startswith("def custom_kernel")


def test_only_the_secret_pass_has_the_secret_seed(run, rowsum, send):
    public, secret = run(good_stages()).passes.order_by("secret")

    assert config_of(public).seed is None
    assert config_of(secret).seed == rowsum.secret_seed


def test_a_public_pass_has_the_seed_of_the_task(send, make_leaderboard):
    make_leaderboard("seeded", task={"seed": 42})

    assert config_of(send(Mode.TEST, leaderboard_name="seeded")).seed == 42


def test_a_source_that_was_purged_meanwhile_is_a_fault_of_ours(send):
    of = send(Mode.TEST)
    type(of.submission.source).objects.update(purged_at=timezone.now(), content=b"")

    with pytest.raises(RunnerFault) as fault:
        config_of(of)

    assert (fault.value.kind, fault.value.retryable) == ("source_deleted", False)


# --- What is kept ---


def test_a_stage_is_kept_with_all_that_the_gpu_side_said(run, alice, rowsum):
    submission = run({"test": a_stage(result={"test-count": "1"})}, mode=Mode.TEST)

    kept = submission.runs.get()
    assert (kept.mode, kept.secret, kept.passed, kept.score) == ("test", False, True, None)
    assert (kept.user, kept.leaderboard, kept.gpu) == (alice, rowsum, "B200")
    assert kept.run["result"] == {"test-count": "1", "check": "pass"}
    assert kept.started_at.isoformat() == "2026-11-30T12:00:00+00:00"
    assert kept.system["hostname"] == "gpu-7"
    assert submission.passes.get().job.status == JobStatus.SUCCEEDED


def test_a_good_public_pass_is_followed_by_the_secret_one_and_both_are_scored(run):
    slower = good_stages()["leaderboard"].run.result | {"benchmark.0.mean": "3000000"}
    submission = run(good_stages(), good_stages(leaderboard=a_stage(result=slower)))

    assert runs_of(submission) == [
        ("test", False, True, None),
        ("benchmark", False, True, None),
        ("leaderboard", False, True, 0.002),
        ("test", True, True, None),
        ("benchmark", True, True, None),
        ("leaderboard", True, True, 0.003),
    ]
    verbs = AuditEvent.objects.filter(subject_id=str(submission.pk)).values_list("verb", flat=True)
    assert verbs.filter(verb="submission.secret_pass_queued").count() == 1
    assert verbs.filter(verb="submission.succeeded").count() == 2


@pytest.mark.parametrize(
    "public",
    [
        {"test": a_stage(passed=False)},
        good_stages(benchmark=a_stage(passed=False), leaderboard=None),
        good_stages(leaderboard=a_stage(passed=False)),
        good_stages(leaderboard=a_failure(FailureKind.TIME_LIMIT)),
        # A container that claims what cannot be: ranked after a test that failed.
        good_stages(test=a_stage(passed=False)),
    ],
    ids=["test", "benchmark", "leaderboard", "time limit", "forged"],
)
def test_a_wrong_public_pass_costs_no_secret_pass(run, public):
    submission = run(public)

    assert Job.objects.count() == 1
    assert [passed for *_, passed, score in runs_of(submission) if not passed] == [False]
    assert all(score is None for *_, score in runs_of(submission))


@pytest.mark.parametrize("mode", [Mode.TEST, Mode.BENCHMARK])
def test_only_leaderboard_mode_has_a_secret_pass(run, mode):
    submission = run({mode: good_stages()[mode]}, mode=mode)

    assert [(run.mode, run.passed) for run in submission.runs.all()] == [(mode, True)]
    assert Job.objects.count() == 1


def test_a_compile_failure_is_kept_with_the_output_of_the_compiler(run):
    record = a_failure(FailureKind.COMPILE_FAILED, "It does not compile.", compilation=BROKEN_BUILD)
    submission = run({"test": record}, file_name="submission.cu")

    kept = submission.runs.get()
    assert (kept.mode, kept.passed, kept.run) == ("test", False, None)
    assert "blok" in kept.compilation["stderr"]
    assert submission.passes.get().job.status == JobStatus.SUCCEEDED


@pytest.mark.parametrize(
    "record",
    [
        a_stage(result={"benchmark-count": "1"}),
        a_stage(result={"benchmark-count": "1", "benchmark.0.mean": "nan"}),
        a_stage(result={"benchmark-count": "2", "benchmark.0.mean": "1", "benchmark.1.mean": "1"}),
    ],
    ids=["no time", "no number", "two where the last is ranked"],
)
def test_a_leaderboard_stage_without_a_usable_time_does_not_rank(run, record):
    submission = run(good_stages(leaderboard=record))

    last = submission.runs.last()
    assert (last.mode, last.passed, last.score, last.failure_kind) == (
        "leaderboard",
        False,
        None,
        "no_score",
    )
    assert "no score" in last.run["stderr"]
    assert Job.objects.count() == 1


@pytest.mark.parametrize(
    ("stages", "failure", "kind"),
    [
        ({}, None, "gpu_side_crashed"),
        ({}, Failure(kind=FailureKind.BAD_CONFIG, message="m"), "bad_config"),
        ({"test": a_stage()}, None, "gpu_side_crashed"),
        ({"test": a_failure(FailureKind.COMPILER_MISSING)}, None, "compiler_missing"),
        ({"test": a_failure(FailureKind.BAD_CASES)}, None, "bad_cases"),
    ],
)
def test_what_the_submission_has_no_part_in_fails_the_job(run, stages, failure, kind):
    submission = run(stages, failure=failure)

    job = submission.passes.get().job
    assert (job.status, job.failure_kind) == (JobStatus.FAILED, kind)
    assert job.failure_message


def test_fr_17_a_stream_of_its_own_is_warned_of_in_the_result_and_not_refused(run):
    content = b"import torch\nside = torch.cuda.Stream()\n"

    submission = run(good_stages(), good_stages(), content=content)

    for kept in submission.runs.filter(secret=False):
        assert kept.passed
        assert "line 2" in kept.run["stderr"]


def test_fr_17_a_word_in_a_comment_is_not_warned_of(run):
    submission = run({"test": a_stage()}, mode=Mode.TEST, content=b"# feeds the downstream op\n")

    assert submission.runs.get().run["stderr"] == ""


def test_a_submission_that_is_marked_as_hacked_while_it_runs_gets_no_secret_pass(
    send, answer, dispatcher
):
    of = send()
    answer(of.job, good_stages())
    type(of.submission).objects.update(verdict="hacked")

    dispatcher.until(of.job, *FINAL)

    assert Job.objects.count() == 1


def test_keeping_results_twice_changes_nothing(send, answer, dispatcher, tmp_path):
    of = send()
    answer(of.job, good_stages())
    handler = handler_of(of.job)
    results = handler.read_results(of.job, envelope.read(tmp_path / f"{of.job.pk}.envelope"))

    for _ in range(2):
        handler.keep_results(of.job, results, {})

    assert len(runs_of(of.submission)) == 3
    assert Job.objects.count() == 2
