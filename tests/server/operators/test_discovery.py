"""What clients can find out, closed leaderboards, and joining them (wire-contract.md, 4 and 8)."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.wire import assert_shape, example

JSON = {"Content-Type": "application/json"}


@pytest.fixture
def invite(admin):
    def make(*boards, count=1):
        answer = admin.post("/admin/invites", json={"leaderboards": boards, "count": count})
        assert answer.status_code == 200, answer.text
        codes = answer.json()["codes"]
        return codes if count > 1 else codes[0]

    return make


def listed(desk):
    with desk.client(cli_id=None) as client:
        answer = client.get("/leaderboards")
    assert answer.status_code == 200, answer.text
    return answer, {board["name"]: board for board in answer.json()}


def test_every_leaderboard_is_listed_in_the_shape_of_the_reference(desk, make_board):
    make_board("listed_py")

    _, boards = listed(desk)

    assert_shape([boards["listed_py-dev"]], example("leaderboards.json"))
    assert boards["listed_py-dev"]["gpu_types"] == ["H100"]
    assert boards["listed_py-dev"]["task"]["tests"] == [{"rows": 64, "cols": 48, "seed": 101}]
    assert boards["rowsum"]["task"]["files"]["submission.py"] == "@SUBMISSION@"
    assert all(isinstance(board["task"], dict) for board in boards.values())


def test_nobody_is_told_seeds_evaluators_or_the_task_of_a_closed_leaderboard(desk, make_board):
    make_board("open_py")
    make_board("hidden_py", "closed")

    answer, boards = listed(desk)

    assert boards["hidden_py-dev"]["visibility"] == "closed"
    assert boards["hidden_py-dev"]["task"] == {}
    assert "MARK_" not in answer.text
    assert "secret_seed" not in answer.text


def test_the_list_is_for_everybody_whatever_id_is_sent(desk):
    for cli_id in (None, "nobody", "alice-cli-id"):
        with desk.client(cli_id=cli_id) as client:
            assert client.get("/leaderboards").status_code == 200


def test_gpus_are_those_that_the_leaderboard_has_here_in_any_case(desk):
    with desk.client(cli_id=None) as client:
        answer = client.get("/gpus/ROWSUM")
        unknown = client.get("/gpus/nothing")

    assert answer.json() == ["B200", "H100", "L4x4", "MI300"]
    assert_shape(answer.json(), example("gpus.json"))
    assert unknown.status_code == 404
    assert "nothing" in unknown.json()["detail"]


def test_gpus_of_a_closed_leaderboard_are_for_its_members(desk, make_board, invite):
    board = make_board("members_py", "closed")
    asked = {}
    for cli_id in (None, "nobody", "bob-cli-id"):
        with desk.client(cli_id=cli_id) as client:
            answer = client.get(f"/gpus/{board}")
            asked[cli_id] = answer.status_code
            assert isinstance(answer.json()["detail"], str)
    with desk.client(cli_id="bob-cli-id") as client:
        joined = client.post("/user/join", json={"code": invite(board)})
        afterwards = client.get(f"/gpus/{board}")

    assert asked == {None: 401, "nobody": 401, "bob-cli-id": 403}
    assert_shape(joined.json(), example("user-join.json"))
    assert joined.json()["leaderboards"] == [board]
    assert afterwards.json() == ["H100"]


@pytest.mark.parametrize(
    ("gpu", "status", "runner"),
    [("b200", "available", "fake"), ("Z9", "unavailable", None), ("x" * 200, "unavailable", None)],
)
def test_a_queue_is_always_told(desk, gpu, status, runner):
    with desk.client(cli_id=None) as client:
        answer = client.get(f"/runner_queue/{gpu}")

    assert answer.status_code == 200
    assert_shape(answer.json(), example("runner-queue.json"))
    assert (answer.json()["status"], answer.json()["runner"]) == (status, runner)


def test_a_queue_that_cannot_be_read_is_told_as_unavailable(make_service):
    broken = make_service()
    broken.start_web()
    broken.database.take_away()

    with broken.client(cli_id=None) as client:
        answer = client.get("/runner_queue/B200")

    assert answer.status_code == 200
    assert answer.json()["status"] == "unavailable"


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        ({"json": {}}, 400),
        ({"json": {"code": ""}}, 400),
        ({"json": {"code": None}}, 400),
        ({"json": {"code": ["a"]}}, 400),
        ({"json": {"code": "a\0b"}}, 400),
        ({"json": {"code": "nobody-has-this"}}, 400),
        ({"json": {"code": "ä" * 64}}, 400),
        ({"json": {"code": "c" * 5000}}, 400),
        ({"content": rb'{"code": "\ud800"}', "headers": JSON}, 400),
        ({"json": []}, 422),
        ({"json": "code"}, 422),
        ({"content": b"null", "headers": JSON}, 422),
        ({"content": b"{", "headers": JSON}, 422),
        ({}, 422),
    ],
)
def test_a_bad_code_is_refused_with_a_reason(desk, sent, status):
    with desk.client() as client:
        answer = client.post("/user/join", **sent)

    assert answer.status_code == status, answer.text
    assert isinstance(answer.json()["detail"], str)


def test_joining_needs_an_id_of_a_cli(desk):
    with desk.client(cli_id=None) as client:
        assert client.post("/user/join", json={"code": "x"}).status_code == 400
        web = {"X-Web-Auth-Id": "alice-cli-id"}
        assert client.post("/user/join", json={"code": "x"}, headers=web).status_code == 400
        unknown = {"X-Popcorn-Cli-Id": "nobody"}
        assert client.post("/user/join", json={"code": "x"}, headers=unknown).status_code == 401


def test_ones_own_code_again_is_fine_and_anothers_is_refused(desk, make_board, invite, audited):
    code = invite(make_board("again_py", "closed"))
    with desk.client("alice-cli-id") as alice, desk.client("bob-cli-id") as bob:
        first, second = (alice.post("/user/join", json={"code": code}) for _ in range(2))
        other = bob.post("/user/join", json={"code": code})

    assert first.json() == second.json() == {"status": "ok", "leaderboards": ["again_py-dev"]}
    assert other.status_code == 400
    assert "somebody else" in other.json()["detail"]
    claims = [row for row in audited("invite.claimed") if "again_py-dev" in row["data"]]
    assert [row["actor_label"] for row in claims] == ["alice (id-alice)"]
    assert claims[0]["request_id"] == first.headers["X-Request-Id"]


def test_of_two_people_at_once_exactly_one_gets_the_code(desk, make_board, invite):
    board = make_board("race_py", "closed")
    codes = invite(board, count=12)

    def join(cli_id, code):
        with desk.client(cli_id) as client:
            return client.post("/user/join", json={"code": code}).status_code

    with ThreadPoolExecutor(8) as pool:
        answers = {
            code: [pool.submit(join, f"{name}-cli-id", code) for name in ("alice", "bob") * 2]
            for code in codes
        }
        statuses = {
            code: sorted(each.result() for each in asked) for code, asked in answers.items()
        }

    assert set(map(tuple, statuses.values())) == {(200, 200, 400, 400)}
    claimed = desk.rows(
        f"SELECT claimed_by_id FROM leaderboards_invite WHERE code IN ({','.join('?' * 12)})",
        *codes,
    )
    assert all(row["claimed_by_id"] is not None for row in claimed)


def test_a_revoked_code_opens_nothing_any_more(desk, admin, make_board, invite):
    board = make_board("revoked_py", "closed")
    code, unclaimed = invite(board), invite(board)
    with desk.client("bob-cli-id") as bob:
        assert bob.post("/user/join", json={"code": code}).status_code == 200
        assert bob.get(f"/gpus/{board}").status_code == 200
        revoked = [admin.delete(f"/admin/invites/{each}") for each in (code, unclaimed)]
        closed = bob.get(f"/gpus/{board}")
        again = [bob.post("/user/join", json={"code": each}) for each in (code, unclaimed)]

    assert [answer.json()["was_claimed"] for answer in revoked] == [True, False]
    assert closed.status_code == 403
    assert [answer.status_code for answer in again] == [400, 400]


@pytest.mark.parametrize(
    "path", ["/leaderboards", "/gpus/rowsum", "/runner_queue/B200", "/user/join"]
)
def test_other_methods_are_refused_in_words(desk, path):
    with desk.client() as client:
        answers = [client.request(method, path) for method in ("OPTIONS", "PATCH", "DELETE")]

    assert [answer.status_code for answer in answers] == [405] * 3
    assert all(isinstance(answer.json()["detail"], str) for answer in answers)
