"""The Brev protocol over real HTTP: wire-contract.md, 6.7."""

from __future__ import annotations

import uuid

import pytest

from runners.gpu.contract import Failure, FailureKind
from tests.server.popcorn import SUBMISSION, names_in
from tests.server.service import wait_for
from tests.wire import assert_shape, example


@pytest.fixture
def submit(upload):
    def call(leaderboard="rowsum", **options):
        return upload("/profile", SUBMISSION, leaderboard=leaderboard, **options)

    return call


@pytest.fixture
def ended(service):
    def call(job_id):
        with service.client() as client:

            def final():
                job = client.get(f"/jobs/{job_id}").json()
                return job if job["status"] in ("succeeded", "failed", "timed_out") else None

            return wait_for(final)

    return call


def test_health_offers_the_options(service):
    with service.client(None) as client:
        assert client.get("/health").json() == example("health-combined.json")


def test_a_profile_comes_back_as_archives(service, submit, ended):
    answer = submit("RowSum")

    assert answer.is_success
    assert_shape(answer.json(), example("brev-accepted.json"))
    job = ended(answer.json()["job_id"])
    assert_shape(job, example("brev-job-succeeded.json") | {"messages": ["text"]})
    assert len(job["artifacts"]) == 3
    assert len({each["name"] for each in job["artifacts"]}) == 3
    with service.client() as client:
        for each in job["artifacts"]:
            assert each["name"].endswith(".zip")
            assert "/" not in each["name"]
            assert each["url"].startswith("/")
            stored = client.get(each["url"])
            assert stored.headers["Content-Type"] == "application/zip"
            assert "profile.ncu-rep" in names_in(stored.content)


def test_the_request_is_recorded_with_its_door_and_options(service, submit, ended):
    job_id = submit(benchmark_index="1", ncu_launch_count="3").json()["job_id"]

    assert len(ended(job_id)["artifacts"]) == 1
    (row,) = service.rows(
        "SELECT origin, gpu, ncu_launch_count FROM profiling_profilerequest WHERE id = ?",
        uuid.UUID(job_id).hex,
    )
    assert row == {"origin": "brev", "gpu": "B200", "ncu_launch_count": 3}


def test_a_waiting_job_has_its_place_in_the_queue(make_service):
    service = make_service()
    service.start_web()  # and no dispatcher
    with service.client() as client:
        form = {"files": {"file": ("s.py", SUBMISSION, "")}, "data": {"leaderboard": "rowsum"}}
        first, second = (client.post("/profile", **form).json()["job_id"] for _ in range(2))
        job = client.get(f"/jobs/{second}").json()

    assert_shape(job, example("brev-job-queued.json"))
    assert (job["status"], job["queue_position"]) == ("queued", 2)
    assert first != second


def test_a_running_job_is_running(service, submit):
    service.plan(run_s=60)
    job_id = submit().json()["job_id"]
    with service.client() as client:
        running = wait_for(
            lambda: (job := client.get(f"/jobs/{job_id}").json())["status"] == "running" and job
        )
        client.post(f"/api/profile-requests/{job_id}/cancel/")
        cancelled = client.get(f"/jobs/{job_id}").json()

    assert_shape(running, example("brev-job-running.json"))
    assert_shape(cancelled, example("brev-job-failed.json"))
    assert cancelled["status"] == "failed"


def test_a_job_without_one_archive_has_failed_and_says_why(service, submit, ended):
    empty = Failure(kind=FailureKind.NO_KERNEL_CAPTURED, message="no kernel was captured")
    service.plan(failures={f"profile.{index}": empty for index in range(3)})

    job = ended(submit().json()["job_id"])

    assert_shape(job, example("brev-job-failed.json"))
    assert "no kernel was captured" in job["error"]


def test_a_wrong_kernel_is_told_beside_its_archives(service, submit, ended):
    service.plan(passed=False)

    job = ended(submit().json()["job_id"])

    assert any("check failed" in message for message in job["messages"])


@pytest.mark.parametrize(
    ("form", "status"),
    [
        ({"leaderboard": "nothing"}, 404),
        ({"leaderboard": ""}, 404),
        ({}, 422),
        ({"leaderboard": ["rowsum", "other"]}, 422),
        ({"leaderboard": "rowsum", "benchmark_index": "3"}, 400),
        ({"leaderboard": "rowsum", "ncu_launch_count": "0"}, 422),
        ({"leaderboard": "rowsum", "ncu_kernel_name_base": "other"}, 400),
    ],
)
def test_what_is_wrong_is_refused_and_recorded(service, upload, form, status):
    count = "SELECT count(*) AS n FROM profiling_profilerequest WHERE refusal_status = ?"
    before = service.rows(count, status)[0]["n"]

    answer = upload("/profile", SUBMISSION, **form)

    assert answer.status_code == status
    assert isinstance(answer.json()["detail"], str)
    assert service.rows(count, status)[0]["n"] == before + 1


def test_a_job_is_its_owners_alone(service, submit, ended):
    job_id = submit().json()["job_id"]
    url = ended(job_id)["artifacts"][0]["url"]

    for cli_id, status in [("bob-cli-id", 404), (None, 400), ("unknown", 401)]:
        with service.client(cli_id) as client:
            for path in (f"/jobs/{job_id}", url):
                assert client.get(path).status_code == status
    with service.client() as client:
        for path in (f"/jobs/{uuid.uuid4()}", "/jobs/nothing", f"/jobs/{job_id}/artifacts/x.zip"):
            answer = client.get(path)
            assert answer.status_code == 404
            assert isinstance(answer.json()["detail"], str)
