"""The admin API over HTTP, in the shapes of the reference (wire-contract.md, 9, 12 and 20)."""

from __future__ import annotations

import json

import pytest

from tests.server.operators.conftest import ADMIN_TOKEN
from tests.server.operators.problems import TASK, write_files
from tests.server.popcorn import SUBMISSION
from tests.wire import assert_shape, example

ROUTES = [
    ("POST", "/admin/start"),
    ("POST", "/admin/stop"),
    ("GET", "/admin/stats"),
    ("GET", "/admin/submissions/1"),
    ("DELETE", "/admin/submissions/1"),
    ("DELETE", "/admin/submissions"),
    ("POST", "/admin/leaderboards"),
    ("DELETE", "/admin/leaderboards/rowsum"),
    ("GET", "/admin/leaderboards/rowsum/submissions"),
    ("POST", "/admin/leaderboards/rowsum/visibility"),
    ("GET", "/admin/leaderboards/rowsum/invites"),
    ("GET", "/admin/leaderboards/rowsum/rate-limits"),
    ("PUT", "/admin/leaderboards/rowsum/rate-limits"),
    ("DELETE", "/admin/leaderboards/rowsum/rate-limits/test"),
    ("POST", "/admin/invites"),
    ("DELETE", "/admin/invites/abc"),
    ("POST", "/admin/update-problems"),
    ("POST", "/admin/application-validations/rowsum/B200"),
    ("POST", "/admin/export-hf"),
]
NOBODYS = [
    "",
    "Bearer",
    "Bearer None",
    "Bearer wrong",
    ADMIN_TOKEN,
    f"bearer {ADMIN_TOKEN}",
    f"Bearer {ADMIN_TOKEN}x",
    "Bearer tökén".encode(),
    "Bearer tökén".encode("latin-1"),
]


@pytest.mark.parametrize(("method", "path"), ROUTES)
def test_every_route_is_closed_without_the_token(desk, method, path):
    """FR-35, and an id of a person does not help."""
    with desk.client("olga-cli-id") as client:
        answers = [
            client.request(method, path, headers={"Authorization": sent}) for sent in NOBODYS
        ]

    assert {answer.status_code for answer in answers} == {401}
    assert all(isinstance(answer.json()["detail"], str) for answer in answers)
    assert ADMIN_TOKEN not in "".join(answer.text for answer in answers)


def test_without_a_token_in_the_settings_nobody_is_admin(make_service):
    off = make_service(ADMIN_TOKEN="")
    off.start_web()
    with off.client(cli_id=None) as client:
        answers = [
            client.post("/admin/start", headers={"Authorization": sent})
            for sent in ("Bearer None", "Bearer", "")
        ]

    assert [answer.status_code for answer in answers] == [401] * 3


def test_what_is_not_offered_says_so(admin):
    for path in ("/admin/application-validations/rowsum/B200", "/admin/export-hf"):
        answer = admin.post(path, json={"leaderboard_ids": [1], "filename": "a.parquet"})
        assert answer.status_code == 501
        assert "not offered" in answer.json()["detail"]


def test_the_switch_stops_submissions_and_survives_a_restart(desk, admin, audited):
    try:
        stopped = admin.post("/admin/stop")
        desk.stop("web")
        desk.start_web()
        with desk.client() as client:
            refused = client.post(
                "/profile/rowsum/B200",
                files={"file": ("submission.py", SUBMISSION, "")},
                headers={"Prefer": "respond-async"},
            )
    finally:
        started = admin.post("/admin/start")

    assert_shape(stopped.json(), example("admin-start.json"))
    assert stopped.json() == {"status": "ok", "accepts_jobs": False}
    assert started.json() == {"status": "ok", "accepts_jobs": True}
    assert refused.status_code == 503
    assert int(refused.headers["Retry-After"]) > 0
    rows = audited("service.acceptance_switched")
    assert [json.loads(row["data"])["accepts"] for row in rows[:2]] == [True, False]
    assert {row["actor_label"] for row in rows} == {"admin token"}


# --- Leaderboards for trying a problem ---


def test_a_leaderboard_is_made_of_a_directory(admin, desk, make_board, audited):
    make_board("made_py")
    answer = admin.post("/admin/leaderboards", json={"directory": "made_py"})

    assert_shape(answer.json(), example("admin-leaderboard-created.json"))
    assert answer.json()["leaderboard"] == "made_py-dev"
    rows = desk.rows("SELECT * FROM leaderboards_leaderboard WHERE name = 'made_py-dev'")
    assert [row["deleted_at"] is None for row in rows] == [False, True]
    assert [json.loads(row["data"])["name"] for row in audited("leaderboard.deleted")[:1]] == [
        "made_py-dev"
    ]


@pytest.mark.parametrize(
    ("sent", "words"),
    [
        ({}, "directory"),
        ({"directory": ""}, "directory"),
        ({"directory": [5]}, "directory"),
        ({"directory": "../outside"}, "not the name"),
        ({"directory": ".."}, "not the name"),
        ({"directory": "/etc"}, "not the name"),
        ({"directory": "rowsum_py/../../outside"}, "not the name"),
        ({"directory": "rowsum_py\n/.."}, "not the name"),
        ({"directory": "a\0b"}, "directory"),
        ({"directory": "gone_py"}, "no such file"),
        ({"directory": "rowsum_py", "visibility": "secret"}, "visibility"),
        ({"directory": "rowsum_py", "visibility": None}, "visibility"),
        ({"directory": "no_gpus_py"}, "names no GPUs"),
        ({"directory": "broken_py"}, "broken_py/task.yml, line 5"),
        ({"directory": "symlink_py"}, "leads out of the checkout"),
    ],
)
def test_a_bad_order_is_refused_before_anything_is_touched(
    admin, desk, problems_dir, make_board, sent, words
):
    make_board("rowsum_py")
    write_files(problems_dir / "no_gpus_py", {"task.yml": TASK.replace("gpus: [H100]\n", "")})
    write_files(problems_dir / "broken_py", {"task.yml": TASK.replace("lang: py", "lang: hip")})
    for name in ("no_gpus_py", "broken_py"):
        write_files(problems_dir / name, {"eval.py": "\n"})
    if not (problems_dir / "symlink_py").exists():
        (problems_dir / "symlink_py").symlink_to(problems_dir.parent / "outside")
    before = desk.rows("SELECT id, name, deleted_at FROM leaderboards_leaderboard")

    answer = admin.post("/admin/leaderboards", json=sent)

    assert answer.status_code == 400, answer.text
    assert words in answer.json()["detail"]
    assert str(problems_dir) not in answer.text
    assert desk.rows("SELECT id, name, deleted_at FROM leaderboards_leaderboard") == before


def test_deleting_a_leaderboard_hides_it_and_an_unknown_one_is_not_there(admin, desk, make_board):
    name = make_board("deleted_py")

    answer = admin.delete(f"/admin/leaderboards/{name.upper()}")
    again = admin.delete(f"/admin/leaderboards/{name}")

    assert answer.json() == {"status": "ok", "leaderboard": name, "force": False}
    assert again.status_code == 404
    assert isinstance(again.json()["detail"], str)
    assert name not in admin.get("/leaderboards").text
    assert admin.get(f"/gpus/{name}").status_code == 404
    assert desk.rows("SELECT 1 FROM leaderboards_leaderboard WHERE name = ?", name)


def test_a_leaderboard_with_submissions_is_deleted_by_force_only(admin, desk, make_board):
    name = make_board("used_py")
    with desk.client() as client:
        sent = client.post(
            f"/profile/{name}/H100",
            files={"file": ("submission.py", SUBMISSION, "")},
            headers={"Prefer": "respond-async"},
        )
        assert sent.status_code == 202, sent.text
    ids = admin.get(f"/admin/leaderboards/{name}/submissions").json()["submission_ids"]
    held = admin.delete(f"/admin/leaderboards/{name}")
    forced = admin.delete(f"/admin/leaderboards/{name}?force=true")

    assert len(ids) == 1
    assert held.status_code == 400
    assert "(1)" in held.json()["detail"]
    assert forced.json() == {"status": "ok", "leaderboard": name, "force": True}
    (row,) = desk.rows("SELECT * FROM leaderboards_submission WHERE id = ?", ids[0])
    assert row["deleted_at"] is not None
    (job,) = desk.rows(
        "SELECT j.status FROM runners_job j JOIN profiling_profilerequest r ON r.job_id = j.id"
        " WHERE r.submission_id = ?",
        ids[0],
    )
    assert job["status"] == "cancelled"


def test_visibility_is_changed_and_audited(admin, make_board, audited):
    name = make_board("visible_py")
    path = f"/admin/leaderboards/{name}/visibility"

    closed = admin.post(path, json={"visibility": "closed"})
    bad = admin.post(path, json={"visibility": "private"})

    assert closed.json() == {"status": "ok", "leaderboard": name, "visibility": "closed"}
    assert bad.status_code == 400
    assert admin.get(f"/gpus/{name}").status_code == 401
    assert json.loads(audited("leaderboard.changed")[0]["data"])["after"] == {
        "visibility": "closed"
    }
    unknown = admin.post("/admin/leaderboards/nothing/visibility", json={"visibility": "closed"})
    assert unknown.status_code == 404


# --- Invites ---


def test_invites_are_made_listed_and_revoked(admin, desk, make_board):
    first, second = make_board("invites_py", "closed"), make_board("invites2_py", "closed")
    made = admin.post(
        "/admin/invites", json={"leaderboards": [first, second.upper(), first], "count": 2}
    )
    one = admin.post("/admin/invites", json={"leaderboard": first, "count": 1})
    code, other = made.json()["codes"]
    with desk.client() as client:
        joined = client.post("/user/join", json={"code": code})
    listed = admin.get(f"/admin/leaderboards/{first}/invites")
    revoked = admin.delete(f"/admin/invites/{code}")
    afterwards = admin.get(f"/admin/leaderboards/{first}/invites").json()["invites"]

    assert_shape(made.json(), example("admin-invites.json"))
    assert made.json()["leaderboards"] == [first, second]
    assert joined.json()["leaderboards"] == sorted([first, second])
    assert_shape(listed.json(), example("admin-invite-list.json"))
    told = {each["code"]: each["user_id"] for each in listed.json()["invites"]}
    assert told == {code: "id-alice", other: None, one.json()["codes"][0]: None}
    assert_shape(revoked.json(), example("admin-invite-revoked.json"))
    assert revoked.json() == {"status": "ok", "code": code, "was_claimed": True}
    assert code not in [each["code"] for each in afterwards]
    assert admin.delete(f"/admin/invites/{code}").status_code == 404
    # A code that begins with - would be an option to `popcorn join`.
    assert all(each.isalnum() for each in (code, other))


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        ({"leaderboards": ["rowsum"]}, 400),
        ({"leaderboards": ["rowsum"], "count": 0}, 400),
        ({"leaderboards": ["rowsum"], "count": 10_001}, 400),
        ({"leaderboards": ["rowsum"], "count": "many"}, 400),
        ({"leaderboards": ["rowsum"], "count": True}, 400),
        ({"leaderboards": [], "count": 1}, 400),
        ({"leaderboards": "rowsum", "count": 1}, 400),
        ({"leaderboards": [5, None], "count": 1}, 400),
        ({"count": 1}, 400),
        ({"leaderboards": ["rowsum", "nothing"], "count": 1}, 404),
        ({"leaderboard": "no/such", "count": 1}, 404),
        ([], 422),
    ],
)
def test_a_bad_order_of_invites_makes_none(admin, desk, sent, status):
    before = desk.rows("SELECT count(*) AS n FROM leaderboards_invite")

    answer = admin.post("/admin/invites", json=sent)

    assert answer.status_code == status, answer.text
    assert isinstance(answer.json()["detail"], str)
    assert desk.rows("SELECT count(*) AS n FROM leaderboards_invite") == before


def test_ten_thousand_invites_at_once_are_made(admin, make_board):
    name = make_board("many_py", "closed")

    made = admin.post("/admin/invites", json={"leaderboard": name, "count": 10_000})

    assert len(set(made.json()["codes"])) == 10_000
    assert len(admin.get(f"/admin/leaderboards/{name}/invites").json()["invites"]) == 10_000


# --- Limits ---


def test_limits_are_set_shown_and_removed(admin, make_board):
    path = f"/admin/leaderboards/{make_board('limits_py')}/rate-limits"
    wanted = {"mode_category": "leaderboard", "max_submissions_per_hour": 3}

    first, second = (
        admin.put(path, json=wanted | {"max_submissions_per_hour": count}) for count in (3, 0)
    )
    shown = admin.get(path)
    removed, again = (admin.delete(f"{path}/leaderboard") for _ in range(2))

    assert_shape(shown.json(), example("admin-rate-limits.json"))
    assert_shape(first.json()["rate_limit"], example("admin-rate-limits.json")["rate_limits"][0])
    assert first.json()["rate_limit"]["id"] == second.json()["rate_limit"]["id"]
    assert [limit["max_submissions_per_hour"] for limit in shown.json()["rate_limits"]] == [0]
    assert removed.json() == {
        "status": "ok",
        "leaderboard": "limits_py-dev",
        "mode_category": "leaderboard",
    }
    assert again.status_code == 404
    assert admin.get(path).json()["rate_limits"] == []


@pytest.mark.parametrize(
    ("method", "path", "sent", "status"),
    [
        ("PUT", "rowsum", {"mode_category": "test", "max_submissions_per_hour": -1}, 400),
        ("PUT", "rowsum", {"mode_category": "test", "max_submissions_per_hour": 2**31}, 400),
        ("PUT", "rowsum", {"mode_category": "profile", "max_submissions_per_hour": 1}, 400),
        ("PUT", "rowsum", {"mode_category": "test"}, 400),
        ("PUT", "nothing", {"mode_category": "test", "max_submissions_per_hour": 1}, 404),
        ("GET", "nothing", None, 404),
    ],
)
def test_bad_limits_are_refused(admin, method, path, sent, status):
    path = f"/admin/leaderboards/{path}/rate-limits"
    answer = admin.request(method, path, json=sent)

    assert answer.status_code == status, answer.text
    assert isinstance(answer.json()["detail"], str)


def test_a_category_that_is_none_is_refused(admin):
    assert admin.delete("/admin/leaderboards/rowsum/rate-limits/profile").status_code == 400
    assert admin.delete("/admin/leaderboards/nothing/rate-limits/test").status_code == 404
