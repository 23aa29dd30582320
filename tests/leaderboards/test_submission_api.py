"""Polling, list and deletion of submissions, in the exact shapes of wire-contract.md, 5.2 and 7."""

from __future__ import annotations

import pytest
from django.test import Client

from leaderboards.models import Submission
from runners.gpu.contract import FailureKind, Mode
from runners.pauses import pause_gpu
from tests.leaderboards.conftest import (
    BROKEN_BUILD,
    a_failure,
    a_stage,
    client_of,
    good_stages,
)
from tests.wire import assert_shape, example


@pytest.fixture
def show(alice):
    def call(submission, name="alice"):
        answer = client_of(name).get(f"/user/submissions/{submission.pk}")
        assert answer.status_code == 200, answer.content
        return answer.json()

    return call


# --- Polling ---


def test_a_queued_submission_is_pending(send, show):
    shown = show(send(Mode.TEST).submission)

    assert_shape(shown, example("submission-details-pending.json"))
    assert (shown["job"]["status"], shown["done"], shown["runs"]) == ("pending", False, [])
    assert shown["runner_queue"]["queued_jobs"] == 1
    assert shown["code"] == "def custom_kernel(data):\n    return data\n"
    assert shown["user_id"] == "id-alice"


def test_a_running_submission_is_running(send, answer, dispatcher, show):
    of = send(Mode.TEST)
    answer(of.job, {"test": a_stage()}, run_s=60)
    dispatcher.step(3)

    shown = show(of.submission)

    assert_shape(shown, example("submission-details-running.json"))
    assert (shown["job"]["status"], shown["done"]) == ("running", False)
    assert (shown["runner_queue"]["queued_jobs"], shown["runner_queue"]["running_jobs"]) == (0, 1)


def test_a_passed_test_shows_what_the_evaluator_said(run, show):
    said = {"test-count": "1", "test.0.spec": "size: 64", "test.0.status": "pass"}
    shown = show(run({"test": a_stage(result=said)}, mode=Mode.TEST))

    assert_shape(shown, example("submission-details-test-passed.json"))
    assert (shown["job"]["status"], shown["done"]) == ("succeeded", True)
    assert shown["runs"][0]["result"] == said | {"check": "pass"}
    assert shown["runs"][0]["start_time"] == "2026-11-30T12:00:00Z"


def test_a_failed_test_is_succeeded_and_not_passed(run, show):
    shown = show(run({"test": a_stage(passed=False)}, mode=Mode.TEST))

    assert_shape(shown, example("submission-details-test-failed.json"))
    assert (shown["job"]["status"], shown["runs"][0]["passed"]) == ("succeeded", False)
    assert shown["runs"][0]["diagnostics"]["exit_code"] == 112


def test_a_compile_error_reaches_its_author(run, show):
    record = a_failure(FailureKind.COMPILE_FAILED, compilation=BROKEN_BUILD)
    shown = show(run({"test": record}, mode=Mode.TEST, file_name="submission.cu"))

    assert_shape(shown, example("submission-details-compile-error.json"))
    assert shown["runs"][0]["result"] == {}
    assert "blok" in shown["runs"][0]["diagnostics"]["compilation"]["stderr"]


def test_a_run_that_never_began_says_why(run, show):
    record = a_failure(FailureKind.JOB_TIME_LIMIT, "No time was left.")
    shown = show(run({"benchmark": record}, mode=Mode.BENCHMARK))

    assert shown["runs"][0]["diagnostics"]["stderr"] == "No time was left."


def test_secret_runs_are_listed_and_nothing_is_told_of_them(run, show, rowsum):
    stages = good_stages()
    shown = show(run(stages, stages))

    assert_shape(shown, example("submission-details-leaderboard-done.json"))
    assert [(r["mode"], r["secret"], r["passed"]) for r in shown["runs"]] == [
        (mode, secret, True)
        for secret in (False, True)
        for mode in ("test", "benchmark", "leaderboard")
    ]
    for secret in shown["runs"][3:]:
        assert not {"result", "diagnostics"} & secret.keys()
    assert [r["score"] for r in shown["runs"] if r["mode"] == "leaderboard"] == ["0.002"] * 2
    assert (shown["job"]["status"], shown["done"]) == ("succeeded", True)
    assert str(rowsum.secret_seed) not in str(shown)


def test_between_the_passes_a_submission_is_running(run, show):
    shown = show(run(good_stages()))

    assert (shown["job"]["status"], shown["done"], len(shown["runs"])) == ("running", False, 3)


def test_a_failed_secret_pass_fails_the_submission(run, show):
    shown = show(run(good_stages(), {"test": a_stage(passed=False)}))

    assert_shape(shown, example("submission-details-secret-failed.json"))
    assert (shown["job"]["status"], shown["done"]) == ("failed", True)
    assert "not ranked" in shown["job"]["error"]


def test_a_failure_of_the_service_ends_the_waiting(run, show):
    shown = show(run({}, mode=Mode.TEST))

    assert_shape(shown, example("submission-details-failed.json"))
    assert (shown["job"]["status"], shown["done"]) == ("failed", True)
    assert "nothing is wrong with the submission" in shown["job"]["error"]


def test_a_hacked_submission_says_so(run, show):
    submission = run({"test": a_stage()}, mode=Mode.TEST)
    Submission.objects.update(verdict="hacked")

    shown = show(submission)

    assert_shape(shown | {"runs": []}, example("submission-details-hacked.json"))
    assert (shown["job"]["status"], shown["done"]) == ("hacked", True)


def test_a_paused_gpu_is_unavailable(send, show):
    submission = send(Mode.TEST).submission
    pause_gpu("B200", kind="x", reason="y", actor_label="olga")

    queue = show(submission)["runner_queue"]

    assert (queue["status"], queue["available_runners"]) == ("unavailable", 0)
    assert queue["error"]


def test_a_poll_costs_two_queries_with_the_question_who_asks(run, alice, django_assert_num_queries):
    submission = run(good_stages(), good_stages())
    client = client_of()
    client.get(f"/user/submissions/{submission.pk}")  # notes the use of the id, once a minute

    with django_assert_num_queries(2):
        client.get(f"/user/submissions/{submission.pk}")


@pytest.mark.parametrize(
    ("pk", "status"),
    [
        *((pk, 404) for pk in ("0", "999999", str(2**53 + 1), str(2**63), "9" * 180)),
        *((pk, 422) for pk in ("abc", "-1", "1.5", "²")),
    ],
)
@pytest.mark.parametrize("method", ["get", "delete"])
def test_an_id_that_nothing_has_is_told_so(alice, method, pk, status):
    answer = getattr(client_of(), method)(f"/user/submissions/{pk}")

    assert answer.status_code == status
    assert isinstance(answer.json()["detail"], str)


@pytest.mark.parametrize("method", ["get", "delete"])
def test_a_stranger_hears_what_one_hears_of_nothing(send, bob, method):
    pk = send(Mode.TEST).submission.pk

    answers = [
        getattr(client_of("bob"), method)(f"/user/submissions/{each}") for each in (pk, pk + 1)
    ]

    assert [answer.status_code for answer in answers] == [404, 404]
    assert answers[0].content == answers[1].content
    assert Submission.objects.get().deleted_at is None


@pytest.mark.parametrize(
    ("headers", "status"),
    [({}, 400), ({"X-Popcorn-Cli-Id": "no such id"}, 401)],
)
@pytest.mark.parametrize("path", ["/user/submissions", "/user/submissions/1"])
def test_an_id_is_needed(db, path, headers, status):
    answer = Client(headers=headers).get(path)

    assert answer.status_code == status
    assert isinstance(answer.json()["detail"], str)


# --- The list ---


def listed(query="leaderboard=rowsum&limit=50", name="alice"):
    answer = client_of(name).get(f"/user/submissions?{query}")
    assert answer.status_code == 200, answer.content
    return answer.json()


def test_the_list_is_newest_first_with_scores_of_what_ranks(run, send, bob):
    ranked = run(good_stages(), good_stages())
    unranked = run(good_stages(), {"test": a_stage(passed=False)})
    waiting = send(Mode.TEST).submission
    send(Mode.TEST, actor=bob)

    rows = listed()

    assert_shape(rows, example("user-submissions.json"))
    assert [row["id"] for row in rows] == [waiting.pk, unranked.pk, ranked.pk]
    assert [row["done"] for row in rows] == [False, True, True]
    assert rows[2]["runs"] == [
        {"gpu_type": "B200", "score": None},
        {"gpu_type": "B200", "score": None},
        {"gpu_type": "B200", "score": "0.002"},
    ]
    assert rows[0]["runs"] == rows[1]["runs"] == []


def test_the_list_can_be_paged_and_needs_no_leaderboard(send):
    sent = [send(Mode.TEST).submission.pk for _ in range(3)]

    assert [row["id"] for row in listed("limit=2&offset=1")] == [sent[1], sent[0]]
    assert [row["id"] for row in listed("leaderboard=RowSum")] == sent[::-1]
    assert listed("leaderboard=nothing") == []
    assert listed("leaderboard=row%00sum") == []


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ("limit=100", 200),
        ("limit=0", 400),
        ("limit=101", 400),
        ("limit=200", 400),
        ("limit=-1", 400),
        ("offset=-1", 400),
        ("limit=" + "9" * 5000, 400),
        ("limit=ten", 422),
        ("limit=1.5", 422),
        ("offset=²", 422),
        ("limit=", 200),
    ],
)
def test_a_bad_page_is_refused(alice, query, status):
    assert client_of().get(f"/user/submissions?{query}").status_code == status


def test_the_list_is_ascii_since_the_client_cuts_it_by_bytes(send):
    send(Mode.TEST, file_name="Kern für B200, schön und groß.py")

    (row,) = listed()

    assert row["file_name"] == "Kern f?r B200, sch?n und gro?.py"
    assert all(str(value).isascii() for value in row.values())


def test_the_list_costs_the_same_for_one_and_for_many(run, send, django_assert_num_queries):
    run(good_stages(), good_stages())
    listed()
    with django_assert_num_queries(3):
        listed()
    for _ in range(5):
        send(Mode.TEST)

    with django_assert_num_queries(3):
        assert len(listed()) == 6


# --- Deleting ---


def test_what_is_deleted_is_hidden_everywhere(run, alice):
    submission = run(good_stages(), good_stages())
    client = client_of()

    answer = client.delete(f"/user/submissions/{submission.pk}")

    assert answer.status_code == 200
    assert answer.json() == {"status": "ok", "submission_id": submission.pk}
    assert_shape(answer.json(), example("user-submission-deleted.json"))
    assert client.get(f"/user/submissions/{submission.pk}").status_code == 404
    assert client.delete(f"/user/submissions/{submission.pk}").status_code == 404
    assert listed() == []
    assert client.get("/submissions/rowsum/B200").json() == []
    assert client.get("/submission_count/rowsum/B200").json() == {"count": 0}
