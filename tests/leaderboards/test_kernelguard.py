"""The KernelGuard pre-check (wire-contract.md, 13.5), by a real command in a real dispatcher."""

from __future__ import annotations

import json
import shlex
import sys

import pytest

from leaderboards.models import Submission
from profiling.models import ProfileRequest
from profiling.streaming.endings import read_ending
from profiling.streaming.submission_endings import read_submission_ending
from runners.gpu.contract import Mode
from runners.models import Job
from runners.states import FINAL, JobStatus
from tests.leaderboards.conftest import a_stage, client_of, good_stages
from tests.profiling import orders

GUARDED = [Mode.BENCHMARK, Mode.LEADERBOARD, Mode.PROFILE]
HACKED = {
    "classification": "hacked",
    "should_filter": True,
    "filter_reason": "high_critical",
    "matched_patterns": [{"pattern": "MODULE_MUTATION"}, {"pattern": "TIMER_PATCH"}],
}
WHY = (
    "Submission rejected by KernelGuard pre-check (high_critical). "
    "Matched rules: MODULE_MUTATION, TIMER_PATCH."
)
CODE = orders.SOURCE.decode()
UNAVAILABLE = {
    "is missing": None,
    "fails": "print('{\"should_filter\": true}'); sys.exit(3)",
    "hangs": "time.sleep(600)",
    "says nothing": "print()",
    "says no JSON": "print('filtered')",
    "says something else": "print('[true]')",
    "has no verdict": "print('{\"should_filter\": 1}')",
    "floods": "print('x' * (2 * 2**20))",
}


@pytest.fixture
def guard(settings, tmp_path):
    """Configures a command with this body; what it was given is in `seen`, one file per check."""
    seen = tmp_path / "seen"
    seen.mkdir()

    def configure(body, *, fail_open=False, limit_s=300):
        script = tmp_path / "guard.py"
        if body is not None:
            script.write_text(
                "import json, os, sys, time\n"
                "code = sys.stdin.read()\n"
                "told = {'code': code, 'arguments': sys.argv[1:], 'environment': dict(os.environ)}\n"
                f"with open({str(seen)!r} + f'/{{os.getpid()}}', 'w') as file:\n"
                "    json.dump(told, file)\n" + body
            )
        command = [sys.executable, str(script)] if body is not None else [str(script)]
        settings.KERNELGUARD_COMMAND = shlex.join(command)
        settings.KERNELGUARD_FAIL_OPEN = fail_open
        settings.KERNELGUARD_TIMEOUT_SEC = limit_s
        return lambda: [json.loads(path.read_text()) for path in seen.iterdir()]

    return configure


def says(answer) -> str:
    return f"print('checking...')\nprint({json.dumps(answer)!r})\nprint()\n"


@pytest.fixture
def sent(send, alice):
    """The job of a new submission in any mode."""

    def call(mode) -> Job:
        return orders.submit(alice).job if mode is Mode.PROFILE else send(mode).job

    return call


def poll() -> dict:
    found = Submission.objects.get()
    return client_of().get(f"/user/submissions/{found.pk}").json()


def ending_of(mode):
    if mode is Mode.PROFILE:
        return read_ending(ProfileRequest.objects.get().pk)
    return read_submission_ending(Submission.objects.get().pk)


@pytest.mark.parametrize("mode", GUARDED)
def test_what_is_rejected_is_hacked_and_never_runs(mode, guard, sent, dispatcher):
    checks = guard(says(HACKED))

    job = dispatcher.until(sent(mode), *FINAL)

    assert (job.status, job.failure_kind) == (JobStatus.FAILED, "kernelguard_rejected")
    assert (job.external_id, job.running_at) == ("", None)
    assert [check["code"] for check in checks()] == [CODE]
    assert Submission.objects.get().verdict == "hacked"
    shown = poll()
    assert (shown["job"]["status"], shown["job"]["error"], shown["done"]) == ("hacked", WHY, True)
    assert Job.objects.count() == 1


@pytest.mark.parametrize("mode", GUARDED)
def test_a_stream_of_what_is_rejected_ends_as_an_error_of_the_submission(
    mode, guard, sent, dispatcher
):
    guard(says(HACKED))
    dispatcher.until(sent(mode), *FINAL)

    assert ending_of(mode).error == {
        "detail": WHY,
        "status_code": 400,
        "code": "kernelguard_rejected",
    }


@pytest.mark.parametrize("mode", GUARDED)
def test_what_is_not_filtered_runs(mode, guard, sent, dispatcher):
    checks = guard(says({"should_filter": False, "classification": "valid"}))

    job = dispatcher.until(sent(mode), JobStatus.RUNNING)

    assert job.external_id
    assert len(checks()) == 1
    assert Submission.objects.get().verdict == ""


def test_tests_are_not_checked(guard, run):
    checks = guard(says(HACKED))

    submission = run({"test": a_stage()}, mode=Mode.TEST)

    assert submission.passes.get().job.status == JobStatus.SUCCEEDED
    assert checks() == []


def test_the_secret_pass_is_not_checked_again(guard, run):
    checks = guard(says({"should_filter": False}))

    submission = run(good_stages(), good_stages())

    assert [of.job.status for of in submission.passes.all()] == [JobStatus.SUCCEEDED] * 2
    assert len(checks()) == 1


@pytest.mark.parametrize("mode", GUARDED)
def test_without_a_command_nothing_is_checked(mode, sent, dispatcher, settings):
    assert settings.KERNELGUARD_COMMAND == ""

    dispatcher.until(sent(mode), JobStatus.RUNNING)


@pytest.mark.parametrize("mode", GUARDED)
def test_an_unavailable_command_fails_the_job_as_a_fault_of_ours(mode, guard, sent, dispatcher):
    guard(None)

    job = dispatcher.until(sent(mode), *FINAL)

    assert (job.status, job.failure_kind) == (JobStatus.FAILED, "kernelguard_unavailable")
    error = ending_of(mode).error
    assert (error["status_code"], error["code"]) == (503, "kernelguard_unavailable")
    assert "nothing is wrong with the submission" in error["detail"]
    assert poll()["job"]["status"] == "failed"
    assert Submission.objects.get().verdict == ""


@pytest.mark.parametrize("mode", GUARDED)
def test_an_unavailable_command_lets_pass_where_it_may(mode, guard, sent, dispatcher):
    guard(None, fail_open=True)

    dispatcher.until(sent(mode), JobStatus.RUNNING)


@pytest.mark.parametrize("how", UNAVAILABLE)
def test_every_way_of_giving_no_answer_is_unavailable(how, guard, sent, dispatcher):
    guard(UNAVAILABLE[how], limit_s=1 if how == "hangs" else 300)

    job = dispatcher.until(sent(Mode.BENCHMARK), *FINAL)

    assert job.failure_kind == "kernelguard_unavailable"


def test_a_command_that_cannot_be_read_is_unavailable(settings, sent, dispatcher):
    settings.KERNELGUARD_COMMAND = "kernelguard 'unfinished"

    assert dispatcher.until(sent(Mode.BENCHMARK), *FINAL).failure_kind == "kernelguard_unavailable"


def test_the_command_gets_its_options_and_none_of_our_secrets(
    guard, sent, dispatcher, settings, monkeypatch
):
    monkeypatch.setenv("MODAL_TOKEN_SECRET", "as-of-nobody-else")
    settings.KERNELGUARD_PROFILE, settings.KERNELGUARD_CONFIG = "strict", "/etc/guard rules.toml"
    checks = guard(says({"should_filter": False}))

    dispatcher.until(sent(Mode.BENCHMARK), JobStatus.RUNNING)

    (check,) = checks()
    assert check["arguments"] == [
        "--profile", "strict", "--config", "/etc/guard rules.toml", "--api-mode"
    ]  # fmt: skip
    assert set(check["environment"]) <= {"PATH", "LANG", "LC_ALL", "LC_CTYPE", "TMPDIR", "HOME"}


def test_a_command_that_does_not_read_its_input_still_has_a_say(guard, send, dispatcher, settings):
    settings.KERNELGUARD_COMMAND = shlex.join(
        [sys.executable, "-c", f"import os; os.close(0); print({json.dumps(HACKED)!r})"]
    )

    job = dispatcher.until(send(Mode.BENCHMARK, content=b"# " + b"x" * 900_000).job, *FINAL)

    assert job.failure_kind == "kernelguard_rejected"


def test_words_that_no_database_keeps_are_told_as_far_as_possible(guard, sent, dispatcher):
    guard(says(HACKED | {"filter_reason": "a\x00b\ud800", "matched_patterns": "none"}))

    job = dispatcher.until(sent(Mode.BENCHMARK), *FINAL)

    assert job.failure_message == "Submission rejected by KernelGuard pre-check (ab?)."
