"""What everybody reads of one ranked submission, over real HTTP, in the shapes of the contract."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from tests.server.service import ROOT, Service, wait_for
from tests.server.submissions.conftest import RIGHT
from tests.wire import assert_shape, example

TOKEN = "the-admin-token-of-this-test"
ADMIN = {"Authorization": f"Bearer {TOKEN}"}
DURATION = re.compile(r"-?P(\d+D)?(T(\d+H)?(\d+M)?(\d+(\.\d+)?S)?)?")


@pytest.fixture(scope="module")
def ranked(tmp_path_factory, template):
    """A service on which alice's submission went through all of leaderboard mode: it, and its id."""
    made = Service(tmp_path_factory.mktemp("ranked"), ADMIN_TOKEN=TOKEN).prepare(template)
    sync = [sys.executable, "manage.py", "sync_problems", "examples"]
    subprocess.run(sync, cwd=ROOT, env=made.env | {"DEBUG": "1"}, check=True)
    try:
        made.start_web()
        made.start_dispatcher()
        yield made, send(made, "/submission/rowsum_cpu/CPU/leaderboard")
    finally:
        made.stop_all()


def send(service, path, **headers) -> int:
    """The number of a submission that is done."""
    with service.client() as client:
        file = {"file": ("submission.py", RIGHT, "")}
        answer = client.post(path, files=file, headers=headers)
        assert answer.status_code == 202, answer.text
        assert_shape(answer.json(), example("submission-accepted.json"))
        number = int(answer.json()["details"]["id"])
        wait_for(lambda: client.get(f"/user/submissions/{number}").json()["done"])
    return number


def test_its_own_page(ranked):
    service, number = ranked
    with service.client() as client:
        shown = client.get(f"/user/submissions/{number}").json()

    assert_shape(shown, example("submission-details-leaderboard-done.json"))
    assert shown["id"] == number


def test_the_list_of_its_person(ranked):
    service, number = ranked
    with service.client() as client:
        listed = client.get("/user/submissions?leaderboard=rowsum_cpu&limit=50").json()

    assert_shape(listed, example("user-submissions.json"))
    assert number in [row["id"] for row in listed]


def test_the_ranking_and_how_many_are_ranked(ranked):
    service, number = ranked
    with service.client(None) as client:
        places = client.get("/submissions/rowsum_cpu/CPU?limit=10&offset=0").json()
        count = client.get("/submission_count/rowsum_cpu/CPU").json()
        of_alice = client.get("/submission_count/rowsum_cpu/CPU?user_id=id-alice").json()

    # An id that is no number is text (docs/submissions.md).
    assert_shape(places, [example("ranking.json")[0] | {"user_id": "text"}])
    assert [row["submission_id"] for row in places] == [number]
    assert_shape(count, example("submission-count.json"))
    assert (count["count"], of_alice["count"]) == (1, 1)


def test_what_an_operator_reads_of_it(ranked):
    service, number = ranked
    with service.client(None, headers=ADMIN) as admin:
        shown = admin.get(f"/admin/submissions/{number}").json()
        numbers = admin.get("/admin/leaderboards/rowsum_cpu/submissions").json()

    assert_shape(shown, example("admin-submission.json"))
    assert numbers.keys() == {"status", "leaderboard", "limit", "offset", "submission_ids"}
    assert (numbers["limit"], numbers["offset"]) == (100, 0)
    assert number in numbers["submission_ids"]


def test_the_figures_of_the_service(ranked):
    service, _ = ranked
    with service.client(None, headers=ADMIN) as admin:
        ever = admin.get("/admin/stats?leaderboard_name=rowsum_cpu").json()
        of_a_day = admin.get("/admin/stats?last_day_only=true").json()

    told = {name.replace("B200", "CPU") for name in example("admin-stats.json")["stats"]}
    assert ever["stats"].keys() == told
    for name in ("max_delay.CPU", "avg_delay.CPU", "total_runtime.CPU"):
        assert DURATION.fullmatch(ever["stats"][name])
    numbers = [name for name in told if "delay" not in name and "runtime" not in name]
    assert all(type(ever["stats"][name]) is int for name in numbers)
    assert type(of_a_day["stats"]["total.id-alice"]) is int
    assert "num_unique_codes" not in of_a_day["stats"]


def test_after_the_deadline_an_operator_sends_and_then_it_is_deleted(ranked):
    service, _ = ranked
    number = send(service, "/admin/submission/rowsum_cpu/CPU/test", **ADMIN)
    another = send(service, "/submission/rowsum_cpu/CPU/test")

    with service.client() as client, service.client(None, headers=ADMIN) as admin:
        deleted = client.delete(f"/user/submissions/{number}").json()
        by_operator = admin.delete(f"/admin/submissions/{another}").json()
        gone = client.get(f"/user/submissions/{number}")

    assert_shape(deleted, example("user-submission-deleted.json"))
    assert by_operator == {"status": "ok", "submission_id": another}
    assert gone.status_code == 404
    assert isinstance(gone.json()["detail"], str)


def test_all_of_a_person_on_a_leaderboard_are_deleted_at_once(ranked):
    service, number = ranked
    with service.client(None, headers=ADMIN) as admin:
        board = admin.get(f"/admin/submissions/{number}").json()["submission"]["leaderboard_id"]
        of_alice = {"leaderboard_id": board, "user_name": "alice"}
        deleted = admin.delete("/admin/submissions", params=of_alice).json()
        ranking = admin.get("/submissions/rowsum_cpu/CPU").json()

    assert deleted == of_alice | {
        "status": "ok",
        "deleted_submissions": 1,
        "deleted_job_status": 2,
        "deleted_runs": 6,
    }
    assert ranking == []
