"""POST /submission/{leaderboard}/{gpu}/{mode}, and the stream of older clients, over real HTTP."""

from __future__ import annotations

import threading
import uuid

import httpx
import pytest

from tests.server.popcorn import SUBMISSION, Stream
from tests.server.service import wait_for
from tests.server.submissions.conftest import RIGHT, WRONG
from tests.wire import assert_shape, example


def test_an_upload_is_answered_at_once_and_runs_in_the_background(cpu, upload, wait_until_done):
    answer = upload("/submission/rowsum_cpu/CPU/test")

    assert answer.status_code == 202
    assert_shape(answer.json(), example("submission-accepted.json"))
    assert type(answer.json()["details"]["id"]) is int
    assert answer.json()["runner_queue"]["runner"] == "local"
    done = wait_until_done(answer.json()["details"]["id"])
    assert_shape(done, example("submission-details-test-passed.json"))
    assert done["runs"][0]["result"]["test-count"] == "3"
    assert done["code"] == RIGHT.decode()


def test_a_ranked_submission_runs_both_passes_and_stands_in_the_ranking(
    cpu, upload, wait_until_done
):
    number = upload("/submission/ROWSUM_CPU/cpu/Leaderboard", cli_id="bob-cli-id").json()[
        "details"
    ]["id"]

    done = wait_until_done(number, "bob-cli-id")

    assert_shape(done, example("submission-details-leaderboard-done.json"))
    assert [run["passed"] for run in done["runs"]] == [True] * 6
    with cpu.client(None) as client:
        ranked = client.get("/submissions/rowsum_cpu/CPU").json()
        assert number in [row["submission_id"] for row in ranked]
        assert client.get("/submission_count/rowsum_cpu/CPU").json()["count"] == len(ranked)


def test_fr_17_a_stream_is_warned_of_in_the_result(cpu, upload, wait_until_done):
    source = RIGHT + b"\ndef unused():\n    import torch\n    return torch.cuda.Stream()\n"

    number = upload("/submission/rowsum_cpu/CPU/test", source).json()["details"]["id"]

    (run,) = wait_until_done(number)["runs"]
    assert run["passed"]
    assert "stream of its own" in run["diagnostics"]["stderr"]


def test_a_profile_can_be_asked_for_in_the_background_too(service, upload, wait_until_done):
    answer = upload("/submission/rowsum/B200/profile", SUBMISSION)

    assert answer.status_code == 202
    done = wait_until_done(answer.json()["details"]["id"])
    assert done["job"]["status"] == "succeeded"
    assert [run["mode"] for run in done["runs"]] == ["profile.0", "profile.1", "profile.2"]


@pytest.mark.parametrize(
    ("path", "content", "name", "status", "code"),
    [
        ("rowsum/B200/private", SUBMISSION, "s.py", 400, "unknown_mode"),
        ("rowsum/B200/nothing", SUBMISSION, "s.py", 400, "unknown_mode"),
        ("nothing/B200/test", SUBMISSION, "s.py", 404, "unknown_leaderboard"),
        ("rowsum/H200/test", SUBMISSION, "s.py", 400, "gpu_not_offered"),
        ("over/B200/test", SUBMISSION, "s.py", 400, "deadline_passed"),
        ("rowsum/B200/test", b"", "s.py", 400, "empty_file"),
        ("rowsum/B200/test", b"#" * 1_000_001, "s.py", 413, "file_too_large"),
        ("rowsum/B200/test", b"#" * 1_100_000, "s.py", 413, "file_too_large"),
        ("rowsum/B200/test", b"\x89PNG\r\n\xff", "s.py", 400, "not_utf8"),
        ("rowsum/B200/test", SUBMISSION, "s.txt", 400, "wrong_extension"),
        ("rowsum/B200/test", b"#!POPCORN\n", "s.py", 400, "bad_directive"),
        ("rowsum/B200/test", b"#!POPCORN gpu\n", "s.py", 400, "bad_directive"),
        ("rowsum/B200/test", b"#!POPCORN speed 9\n", "s.py", 400, "bad_directive"),
        ("rowsum/B200/test", b"#!POPCORN gpu A\n#!POPCORN gpus B\n", "s.py", 400, "bad_directive"),
        ("rowsum/B200/test", b"#!POPCORN leaderboard x\n", "s.py", 400, "directive_conflict"),
        ("rowsum/MI300/profile", SUBMISSION, "s.py", 400, "gpu_not_profilable"),
    ],
)
@pytest.mark.parametrize("door", ["/submission/", "/"])
def test_every_door_refuses_alike_before_anything_runs(
    service, upload, door, path, content, name, status, code
):
    answer = upload(door + path, content, name=name)

    assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert isinstance(answer.json()["detail"], str)


@pytest.mark.parametrize("door", ["/submission/rowsum/B200/test", "/rowsum/B200/test"])
@pytest.mark.parametrize(
    ("cli_id", "status"),
    [(None, 400), ("unknown", 401), ("revoked-cli-id", 401), ("mallory-cli-id", 403)],
)
def test_who_may_not_submit_hears_why(service, upload, door, cli_id, status):
    answer = upload(door, SUBMISSION, cli_id=cli_id)

    assert answer.status_code == status
    assert isinstance(answer.json()["detail"], str)


@pytest.mark.parametrize("door", ["/submission/rowsum/B200/test", "/rowsum/B200/test"])
def test_a_form_without_a_file_is_a_misfit(service, door):
    with service.client() as client:
        answer = client.post(door, files={"other": ("s.py", SUBMISSION)})

    assert answer.status_code == 422
    assert "file" in answer.json()["detail"]


def test_directives_in_capitals_and_parts_without_a_type_are_fine(service, upload):
    source = b"#!POPCORN leaderboard RowSum\n" + SUBMISSION

    assert upload("/submission//rowsum//b200/TEST", source).status_code == 202


def test_stopped_submissions_are_told_when_to_come_back(make_service):
    stopped = make_service(ADMIN_TOKEN="the token of the operators")
    stopped.start_web()
    bearer = {"Authorization": "Bearer the token of the operators"}
    with stopped.client() as client:

        def send(path):
            return client.post(path, files={"file": ("s.py", SUBMISSION, "")})

        assert client.post("/admin/stop", headers=bearer).status_code == 200
        for path in ("/submission/rowsum/B200/test", "/profile/rowsum/B200", "/rowsum/B200/test"):
            answer = send(path)
            assert answer.status_code == 503
            assert answer.headers["Retry-After"] == str(answer.json()["retry_after"]) == "600"
        assert client.post("/admin/start", headers=bearer).status_code == 200
        assert send("/submission/rowsum/B200/test").status_code == 202

        limit = {"mode_category": "test", "max_submissions_per_hour": 2}
        client.put("/admin/leaderboards/rowsum/rate-limits", json=limit, headers=bearer)
        assert send("/submission/rowsum/B200/benchmark").status_code == 202
        for path in ("/submission/rowsum/B200/test", "/profile/rowsum/B200", "/rowsum/B200/test"):
            answer = send(path)
            assert answer.status_code == 429
            assert int(answer.headers["Retry-After"]) == answer.json()["retry_after"] > 3500
            assert "2 of at most 2" in answer.json()["detail"]


def test_only_operators_let_somebody_submit_after_the_deadline(make_service):
    service = make_service(ADMIN_TOKEN="the token of the operators")
    service.start_web()
    path = "/admin/submission/over/B200/test"
    with service.client() as client:

        def send(**headers):
            return client.post(path, files={"file": ("s.py", SUBMISSION, "")}, headers=headers)

        assert send().status_code == 401
        assert send(Authorization="Bearer None").status_code == 401
        answer = send(Authorization="Bearer the token of the operators")
        assert answer.status_code == 202
        assert_shape(answer.json(), example("submission-accepted.json"))
    with service.client(None) as client:
        bearer = {"Authorization": "Bearer the token of the operators"}
        answer = client.post(path, files={"file": ("s.py", SUBMISSION, "")}, headers=bearer)
        assert answer.status_code == 400, "whose submission it is must be said as well"


# --- The three-segment route ---


def streamed(service, path, content):
    with (
        service.client() as client,
        client.stream("POST", path, files={"file": ("s.py", content, "")}) as response,
    ):
        assert response.status_code == 200, response.read()
        assert response.headers["Content-Type"] == "text/event-stream"
        stream = Stream(response)
        return (*stream.last(), stream.messages)


def test_a_leaderboard_stream_goes_through_both_passes_and_redacts_the_secret_one(cpu):
    name, result, messages = streamed(cpu, "/rowsum_cpu/CPU/leaderboard", RIGHT)

    assert name == "result", result
    public, secret = result["results"]
    assert list(public["runs"]) == list(secret["runs"]) == ["test", "benchmark", "leaderboard"]
    assert public["runs"]["benchmark"]["run"]["result"]["benchmark-count"] == 3
    assert public["runs"]["test"]["run"]["result"]["test-count"] == 3
    for run in secret["runs"].values():
        assert run["run"]["passed"] is True
        assert (run["run"]["result"], run["run"]["stdout"], run["run"]["stderr"]) == ({}, "", "")
    assert len(result["reports"]) == 2
    assert any("running on CPU" in message for message in messages)


def test_a_wrong_kernel_ends_as_a_result_that_says_so(cpu):
    name, result, messages = streamed(cpu, "/rowsum_cpu/CPU/leaderboard", WRONG)

    assert name == "result"
    (public,) = result["results"]
    assert public["runs"]["test"]["run"]["passed"] is False
    assert "not ranked" in messages[-1]
    assert "not passed" in result["reports"][0]


def test_a_failure_of_the_service_ends_as_an_error(service):
    from runners.gpu.contract import Failure, FailureKind

    service.plan(failure=Failure(kind=FailureKind.GPU_SIDE_CRASHED, message="a secret of ours"))

    name, error, _ = streamed(service, "/rowsum/B200/test", SUBMISSION)

    assert (name, error["status_code"], error["code"]) == ("error", 503, "gpu_side_crashed")
    assert "secret" not in error["detail"]


def test_a_profile_by_the_old_route_counts_benchmarks_with_an_integer(service):
    name, result, _ = streamed(service, "/RowSum/b200/Profile", SUBMISSION)

    assert name == "result"
    for run in result["results"][0]["runs"].values():
        assert run["run"]["result"]["benchmark-count"] == 1


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/rowsum/B200/test"),
        ("POST", "/admin/no/such"),
        ("POST", "/operators/no/such"),
        ("POST", "/API/no/such"),
        ("DELETE", "/a/b/c"),
        ("GET", "/user/b/c"),
    ],
)
def test_other_addresses_of_three_parts_are_nothing(service, method, path):
    answer = httpx.request(method, service.base_url + path, trust_env=False)

    assert answer.status_code in (404, 403)
    if not path.startswith("/operators"):
        assert answer.status_code == 404
        assert isinstance(answer.json()["detail"], str)


def test_fr_17_a_profile_warns_of_a_stream_of_its_own_in_its_messages_and_its_report(service):
    source = SUBMISSION + b"side = torch.cuda.Stream()\n"

    name, result, messages = streamed(service, "/profile/rowsum/B200", source)

    assert name == "result"
    assert any("stream of its own" in message for message in messages)
    assert "stream of its own" in result["reports"][0]


# --- Polls ---


@pytest.mark.parametrize("path", ["/user/submissions/{}", "/user/submissions", "/jobs/{}"])
def test_a_poll_waits_out_a_database_that_is_away_for_a_moment(make_service, path):
    service = make_service()
    service.start_web()
    file = {"file": ("s.py", SUBMISSION, "")}
    with service.client() as client:
        if path.startswith("/jobs"):
            sent = client.post("/profile", files=file, data={"leaderboard": "rowsum"})
            number = sent.json()["job_id"]
        else:
            sent = client.post("/submission/rowsum/B200/test", files=file)
            number = sent.json()["details"]["id"]
        service.database.take_away()
        returning = threading.Timer(1.0, service.database.bring_back)
        returning.start()
        answer = client.get(path.format(number))
        returning.join()

    assert answer.status_code == 200, answer.text


def test_polls_are_never_refused_for_their_number(make_service):
    service = make_service(PROFILE_RATE="3/m")
    service.start_web()
    file = {"file": ("s.py", SUBMISSION, "")}
    with service.client() as client:
        sent = [client.post("/submission/rowsum/B200/test", files=file) for _ in range(4)]
        assert [answer.status_code for answer in sent] == [202, 202, 202, 429]
        number = sent[0].json()["details"]["id"]
        polls = {client.get(f"/user/submissions/{number}").status_code for _ in range(50)}

    assert polls == {200}


def test_deleting_ends_what_runs_and_hides_it(service, upload):
    service.plan(run_s=60)
    number = upload("/submission/rowsum/B200/test", SUBMISSION).json()["details"]["id"]
    with service.client() as client:
        path = f"/user/submissions/{number}"
        wait_for(lambda: client.get(path).json()["job"]["status"] == "running")
        assert client.delete(path).json() == {"status": "ok", "submission_id": number}
        assert client.get(path).status_code == 404
    (row,) = service.rows(
        "SELECT job_id FROM leaderboards_submissionjob WHERE submission_id = ?", number
    )
    job_id = uuid.UUID(row["job_id"])
    wait_for(lambda: service.runner.calls("cancelled", job_id))
