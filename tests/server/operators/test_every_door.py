"""The same rules at every door to a leaderboard: who is let in, and what is not there."""

from __future__ import annotations

import pytest

from tests.server.popcorn import SUBMISSION

READS = ("/gpus/{board}", "/submissions/{board}/H100", "/submission_count/{board}/H100")
# Where, and with which form beside the file.
UPLOADS: list[tuple[str, dict[str, str]]] = [
    ("/submission/{board}/H100/test", {}),
    ("/admin/submission/{board}/H100/test", {}),
    ("/profile/{board}/H100", {}),
    ("/{board}/H100/profile", {}),
    ("/profile", {"leaderboard": "{board}"}),
]


def upload(client, door, board):
    """The answer, with its body only where it is an error: a stream would not end here."""
    path, form = door
    with client.stream(
        "POST",
        path.format(board=board),
        files={"file": ("submission.py", SUBMISSION, "")},
        data={name: value.format(board=board) for name, value in form.items()},
    ) as answer:
        if answer.is_error:
            answer.read()
    return answer


@pytest.fixture
def closed(make_board):
    return make_board("every_door_py", "closed")


@pytest.fixture
def as_bob(desk, admin):
    """Bob at the doors of submitters and of operators alike."""
    token = {"Authorization": admin.headers["Authorization"]}
    with desk.client("bob-cli-id") as client:
        client.headers.update(token)
        yield client


@pytest.mark.parametrize("path", READS)
def test_a_closed_leaderboard_is_read_by_its_members_alone(desk, admin, as_bob, closed, path):
    path = path.format(board=closed)
    with desk.client(cli_id=None) as nobody, desk.client("no-such-id") as unknown:
        statuses = [client.get(path).status_code for client in (nobody, unknown, as_bob)]
    code = admin.post("/admin/invites", json={"leaderboard": closed, "count": 1}).json()["codes"][0]
    as_bob.post("/user/join", json={"code": code}).raise_for_status()

    assert statuses == [401, 401, 403]
    assert as_bob.get(path).status_code == 200


@pytest.mark.parametrize("door", UPLOADS)
def test_only_members_submit_to_a_closed_leaderboard(admin, as_bob, closed, door):
    refused = upload(as_bob, door, closed)
    code = admin.post("/admin/invites", json={"leaderboard": closed, "count": 1}).json()["codes"][0]
    as_bob.post("/user/join", json={"code": code}).raise_for_status()
    taken = upload(as_bob, door, closed)

    assert refused.status_code == 403, refused.text
    assert isinstance(refused.json()["detail"], str)
    assert taken.is_success


@pytest.mark.parametrize("path", READS)
def test_an_unknown_leaderboard_cannot_be_read(as_bob, path):
    answer = as_bob.get(path.format(board="nothing"))

    assert (answer.status_code, answer.json()["code"]) == (404, "unknown_leaderboard")


@pytest.mark.parametrize("door", UPLOADS)
def test_nothing_is_submitted_to_an_unknown_leaderboard(as_bob, door):
    answer = upload(as_bob, door, "nothing")

    assert (answer.status_code, answer.json()["code"]) == (404, "unknown_leaderboard")


@pytest.mark.parametrize("limit", ["200", "101", "0", "-1"])
def test_a_list_longer_than_a_hundred_is_refused(as_bob, limit):
    answer = as_bob.get("/user/submissions", params={"leaderboard": "rowsum", "limit": limit})

    assert answer.status_code == 400
    assert "100" in answer.json()["detail"]


@pytest.mark.parametrize("number", [2**53 + 1, 2**63, 2**64, 10**100])
@pytest.mark.parametrize("path", ["/user/submissions/{}", "/admin/submissions/{}"])
def test_a_number_that_no_submission_can_have_is_not_there(as_bob, path, number):
    answers = [as_bob.request(method, path.format(number)) for method in ("GET", "DELETE")]

    assert [answer.status_code for answer in answers] == [404, 404]
    assert all(isinstance(answer.json()["detail"], str) for answer in answers)


@pytest.mark.parametrize("mode", ["test", "leaderboard"])
def test_fr_17_the_word_stream_is_no_offence(as_bob, mode):
    source = (
        b"# reads upstream of the stream\ndef custom_kernel(bitstream):\n    return bitstream\n"
    )
    answer = as_bob.post(
        f"/submission/rowsum/B200/{mode}", files={"file": ("submission.py", source, "")}
    )

    assert answer.status_code == 202, answer.text
