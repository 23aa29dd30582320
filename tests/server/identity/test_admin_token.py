"""The guards: the admin token, and ids of browsers and CLIs (wire-contract.md, 1.3; FR-35)."""

from __future__ import annotations

import pytest

from tests.server.identity.conftest import ADMIN_TOKEN
from tests.server.popcorn import PATH, form

BAN = "/admin/ban/id-bob"


def with_token(service, method, path, header=f"Bearer {ADMIN_TOKEN}", **options):
    headers = {} if header is None else {"Authorization": header}
    with service.client(cli_id=None, headers=headers) as client:
        return client.request(method, path, **options)


def test_a_ban_holds_from_the_next_request_on_and_is_lifted_as_fast(site):
    with site.client("bob-cli-id") as bob:
        before = bob.post(PATH, headers={"Prefer": "respond-async"}, **form())
        banned = with_token(site, "POST", BAN, json={"reason": "forged results"})
        refused = bob.post(PATH, headers={"Prefer": "respond-async"}, **form())
        lifted = with_token(site, "DELETE", BAN)
        after = bob.post(PATH, headers={"Prefer": "respond-async"}, **form())

    assert banned.json() == {"status": "ok", "user_id": "id-bob", "banned": True}
    assert lifted.json() == {"status": "ok", "user_id": "id-bob", "banned": False}
    assert [before.status_code, refused.status_code, after.status_code] == [202, 403, 202]
    assert "forged results" in refused.json()["detail"]
    events = site.rows(
        "SELECT verb, actor_label, actor_id, address FROM leaderboards_auditevent"
        " WHERE verb LIKE 'user.%banned' ORDER BY id DESC LIMIT 2"
    )
    assert [event["verb"] for event in events] == ["user.unbanned", "user.banned"]
    assert {event["actor_label"] for event in events} == {"admin token"}
    assert {event["address"] for event in events} == {"127.0.0.1"}


def test_a_ban_needs_no_body(site):
    assert with_token(site, "POST", BAN).status_code == 200
    assert with_token(site, "DELETE", BAN).status_code == 200


@pytest.mark.parametrize("method", ["POST", "DELETE"])
def test_nobody_unknown_is_banned(site, method):
    answer = with_token(site, method, "/admin/ban/no-such-user")

    assert answer.status_code == 404
    assert answer.json()["code"] == "unknown_user"


@pytest.mark.parametrize("body", [{"reason": "x" * 501}, {"reason": {}}, ["reason"]])
def test_a_reason_that_is_none_bans_nobody(site, body):
    answer = with_token(site, "POST", BAN, json=body)

    assert answer.status_code == 422
    assert isinstance(answer.json()["detail"], str)
    assert site.rows("SELECT banned_at FROM leaderboards_popcornuser WHERE username = 'bob'") == [
        {"banned_at": None}
    ]


@pytest.mark.parametrize(
    "header",
    [
        None,
        "",
        "Bearer",
        "Bearer x",
        "Bearer None",
        "Bearer null",
        ADMIN_TOKEN,
        f"bearer {ADMIN_TOKEN}",
        f"Bearer  {ADMIN_TOKEN}",
        f"Bearer {ADMIN_TOKEN}x",
        f"Bearer {ADMIN_TOKEN[:-1]}",
        f"Basic {ADMIN_TOKEN}",
        "Bearer tökén".encode("latin-1"),
        "Bearer tökén".encode(),
        b"Bearer \xff\xfe",
    ],
)
def test_fr_35_what_is_not_the_admin_token_is_a_401(site, header):
    answer = with_token(site, "POST", BAN, header)

    assert answer.status_code == 401
    assert answer.headers["WWW-Authenticate"] == "Bearer"
    assert "MARK-SECRET" not in answer.text


@pytest.mark.parametrize("header", ["Bearer None", "Bearer", "Bearer null", None])
def test_a_service_without_an_admin_token_has_no_admin(service, header):
    assert with_token(service, "POST", BAN, header).status_code == 401


@pytest.mark.parametrize("name", ["X-Popcorn-Cli-Id", "X-Web-Auth-Id"])
@pytest.mark.parametrize("value", ["ö".encode("latin-1"), b"\xff\xfe\x80", "ö".encode()])
def test_fr_35_an_identity_header_of_odd_bytes_is_a_401(site, name, value):
    headers = {"X-Popcorn-Cli-Id": "nobody"} | {name: value}
    with site.client(cli_id=None, headers=headers) as client:
        assert client.get("/api/profile-requests/").status_code == 401
        assert client.post(PATH, **form()).status_code == 401
