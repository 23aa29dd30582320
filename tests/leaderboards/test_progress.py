"""Status, `done` and error of a submission: what the CLI's waiting depends on."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from leaderboards.progress import PassState, Progress, progress_of
from runners.states import FINAL, JobStatus

S = JobStatus


@dataclass
class Stage:
    mode: str
    secret: bool = False
    passed: bool = True
    failure_message: str = ""


GOOD = [Stage(mode, secret) for secret in (False, True) for mode in ("test", "leaderboard")]


def progress(public, secret=None, *, mode="leaderboard", stages=(), verdict="", **failure):
    def state(status):
        said = failure if status in (S.FAILED, S.TIMED_OUT) else {}
        return PassState(status=status, **said)

    return progress_of(
        submission_id=7,
        mode=mode,
        gpu="B200",
        verdict=verdict,
        public=state(public),
        secret=state(secret) if secret else None,
        stages=stages,
    )


ALONE = [
    (public, None, mode) for public in S for mode in ("test", "benchmark", "leaderboard", "profile")
]
# Only a good public pass for the leaderboard is followed by another.
FOLLOWED = [(S.SUCCEEDED, secret, "leaderboard") for secret in S]


@pytest.mark.parametrize(("public", "secret", "mode"), ALONE + FOLLOWED)
def test_done_comes_with_the_final_status_and_never_before_or_after_it(public, secret, mode):
    stages = GOOD if secret else GOOD[:2]
    found = progress(public, secret, mode=mode, stages=stages, failure_kind="run_lost")

    assert found.done == (found.status in ("succeeded", "failed", "timed_out"))
    assert found.done == (public in FINAL and (secret is None or secret in FINAL))
    assert (found.error is not None) == (found.status in ("failed", "timed_out"))


@pytest.mark.parametrize(
    ("status", "shown"),
    [(S.QUEUED, "pending"), (S.STARTING, "pending"), (S.RUNNING, "running")],
)
def test_a_waiting_submission_is_pending_and_then_running(status, shown):
    assert progress(status, mode="test").status == shown


def test_a_queued_secret_pass_does_not_send_a_client_back_to_pending():
    assert progress(S.SUCCEEDED, S.QUEUED).status == "running"


def test_a_test_that_merely_fails_is_succeeded():
    found = progress(S.SUCCEEDED, mode="test", stages=[Stage("test", passed=False)])

    assert found == Progress(status="succeeded", done=True)


def test_a_good_leaderboard_submission_has_no_error():
    assert progress(S.SUCCEEDED, S.SUCCEEDED, stages=GOOD) == Progress(
        status="succeeded", done=True
    )


@pytest.mark.parametrize(
    ("secret", "stages", "words"),
    [
        (None, [Stage("test", passed=False)], "the test run did not pass on B200"),
        (None, [Stage("test", passed=False, failure_message="Too slow.")], "(Too slow.)"),
        (None, [], "the public run did not end well on B200"),
        (S.SUCCEEDED, [*GOOD[:2], Stage("test", True, False, "x")], "secret validation"),
    ],
)
def test_what_is_not_ranked_says_so_and_names_the_gpu(secret, stages, words):
    found = progress(S.SUCCEEDED, secret, stages=stages)

    assert (found.status, found.done) == ("failed", True)
    assert words in found.error
    assert "not ranked" in found.error
    assert "(x)" not in found.error, "nothing is told of a secret run but that it did not pass"


def test_a_failure_of_ours_is_told_by_its_kind_and_not_in_its_own_words():
    found = progress(S.FAILED, failure_kind="run_lost", failure_message="/secret/path: errno 5")

    assert "run lost" in found.error
    assert "nothing is wrong with the submission" in found.error
    assert "secret" not in found.error


def test_a_failure_of_the_task_is_told_in_the_words_of_the_gpu_side():
    found = progress(S.FAILED, failure_kind="bad_cases", failure_message="Exit code 113.")

    assert found.error == "Exit code 113."


@pytest.mark.parametrize("public", S)
def test_hacked_is_final_whatever_the_job_does(public):
    found = progress(public, verdict="hacked", failure_kind="x")

    assert (found.status, found.done) == ("hacked", True)
    assert found.error
