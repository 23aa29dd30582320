"""What the admin API shows and does of submissions (wire-contract.md, 9, 12 and 20)."""

from __future__ import annotations

import pytest
from django.test import Client

from leaderboards.models import AuditEvent, Submission
from runners.gpu.contract import Mode
from tests.leaderboards.conftest import a_stage, good_stages
from tests.wire import assert_shape, example


@pytest.fixture
def admin(settings, db):
    settings.ADMIN_TOKEN = "the token"
    return Client(headers={"Authorization": "Bearer the token"})


def test_a_submission_is_shown_with_everything_that_was_printed(admin, run):
    said = {"test-count": "1", "test.0.spec": "size: 64", "test.0.status": "pass"}
    submission = run({"test": a_stage(result=said)}, mode=Mode.TEST)

    shown = admin.get(f"/admin/submissions/{submission.pk}").json()

    assert_shape(shown, example("admin-submission.json"))
    assert shown["submission"]["submission_id"] == submission.pk
    assert shown["submission"]["job_status"] == "succeeded"
    assert shown["submission"]["runs"][0]["meta"]["exit_code"] == 0
    assert shown["submission"]["runs"][0]["result"]["check"] == "pass"


def test_operators_see_the_secret_pass_too(admin, run):
    submission = run(good_stages(), good_stages())

    runs = admin.get(f"/admin/submissions/{submission.pk}").json()["submission"]["runs"]

    assert [each["secret"] for each in runs] == [False] * 3 + [True] * 3
    assert all(each["result"] for each in runs)


def test_deleting_hides_and_deleting_what_is_not_there_says_so(admin, run):
    submission = run({"test": a_stage()}, mode=Mode.TEST)
    path = f"/admin/submissions/{submission.pk}"

    deleted, again, shown = admin.delete(path), admin.delete(path), admin.get(path)

    assert deleted.json() == {"status": "ok", "submission_id": submission.pk}
    assert (again.status_code, shown.status_code) == (404, 404)
    assert isinstance(again.json()["detail"], str)
    assert Submission.objects.get(pk=submission.pk).deleted_at is not None
    assert AuditEvent.objects.get(verb="submission.deleted").actor_label == "admin token"


@pytest.mark.parametrize(
    ("number", "status"), [("0", 404), ("99999999999999999999999", 404), ("abc", 422), ("-1", 422)]
)
@pytest.mark.parametrize("method", ["get", "delete"])
def test_numbers_that_nothing_has_are_refused(admin, method, number, status):
    answer = getattr(admin, method)(f"/admin/submissions/{number}")

    assert answer.status_code == status
    assert isinstance(answer.json()["detail"], str)


def test_numbers_of_a_leaderboards_submissions_come_newest_first(admin, run):
    made = [run({"test": a_stage()}, mode=Mode.TEST).pk for _ in range(3)]
    admin.delete(f"/admin/submissions/{made[1]}")

    path = "/admin/leaderboards/ROWSUM/submissions"
    whole, page = admin.get(path).json(), admin.get(f"{path}?limit=1&offset=1").json()

    assert whole == {
        "status": "ok",
        "leaderboard": "rowsum",
        "limit": 100,
        "offset": 0,
        "submission_ids": [made[2], made[0]],
    }
    assert (page["limit"], page["offset"], page["submission_ids"]) == (1, 1, [made[0]])
    assert admin.get(f"{path}?limit=0").status_code == 400
    assert admin.get(f"{path}?limit=x").status_code == 422
    assert admin.get("/admin/leaderboards/nothing/submissions").status_code == 404


def test_all_of_a_person_on_a_leaderboard_are_deleted_together(admin, run, alice, bob, rowsum):
    for _ in range(2):
        run({"test": a_stage()}, mode=Mode.TEST)
    query = {"leaderboard_id": rowsum.pk, "user_name": "alice"}

    answer = admin.delete("/admin/submissions", query_params=query)

    assert answer.json() == {
        "status": "ok",
        **query,
        "deleted_job_status": 2,
        "deleted_runs": 2,
        "deleted_submissions": 2,
    }
    assert not alice.submissions.filter(deleted_at=None).exists()


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ({}, 400),
        ({"user_name": "alice"}, 400),
        ({"leaderboard_id": "x", "user_name": "alice"}, 400),
        ({"leaderboard_id": 2**63, "user_name": "alice"}, 400),
        ({"leaderboard_id": 999, "user_name": "alice"}, 404),
        ({"leaderboard_id": 0, "user_name": "alice"}, 400),
    ],
)
def test_a_bad_order_deletes_nothing(admin, run, query, status):
    submission = run({"test": a_stage()}, mode=Mode.TEST)

    answer = admin.delete("/admin/submissions", query_params=query)

    assert answer.status_code == status
    assert isinstance(answer.json()["detail"], str)
    assert Submission.objects.get(pk=submission.pk).deleted_at is None


def test_a_name_that_is_nobodys_or_several_peoples_is_refused(admin, alice, bob, rowsum):
    for person in (alice, bob):
        person.display_name = "ada"
        person.save()

    for name, status in (("nobody", 404), ("alice", 404), ("ada", 400)):
        query = {"leaderboard_id": rowsum.pk, "user_name": name}
        assert admin.delete("/admin/submissions", query_params=query).status_code == status


def test_figures_are_told_of_all_and_of_one_leaderboard(admin, run):
    run({"test": a_stage()}, mode=Mode.TEST)

    whole = admin.get("/admin/stats").json()
    of_one = admin.get("/admin/stats?leaderboard_name=RowSum&last_day_only=true").json()

    assert whole["status"] == "ok"
    assert (whole["stats"]["num_submissions"], whole["stats"]["num_users"]) == (1, 1)
    assert "num_unique_codes" in whole["stats"]
    assert of_one["stats"]["total.id-alice"] == 1
    assert admin.get("/admin/stats?leaderboard_name=nothing").status_code == 404
    assert admin.get("/admin/stats?last_day_only=maybe").status_code == 400


@pytest.mark.parametrize("count", [1, 12])
def test_leaderboards_are_listed_in_one_query(
    admin, make_leaderboard, count, django_assert_num_queries
):
    for number in range(count):
        make_leaderboard(f"board{number}", visibility="closed" if number % 2 else "public")

    with django_assert_num_queries(1):
        assert len(admin.get("/leaderboards").json()) == count


def test_a_gpu_that_is_paused_is_unavailable(admin):
    from runners.pauses import pause_gpu

    pause_gpu("B200", kind="driver", reason="secret words of ours", actor_label="t")

    told = admin.get("/runner_queue/B200").json()

    assert told["status"] == "unavailable"
    assert "secret words" not in told["error"]
