"""What every address has in common: JSON errors, health, and no surprises in the path."""

from __future__ import annotations

import time

import httpx
import pytest
import yaml

from tests.server.popcorn import PATH, form
from tests.server.service import wait_for


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/nothing", 404),
        ("GET", "/api/nothing/", 404),
        ("GET", "/api/profile-requests/not-a-uuid/", 404),
        ("GET", PATH, 405),
        ("HEAD", PATH, 405),
        ("OPTIONS", PATH, 405),
        ("DELETE", "/api/profile-requests/", 405),
        ("POST", "/health", 405),
        ("POST", "/ready", 405),
        ("POST", f"{PATH}/", 404),  # and no redirect: it would lose the body
    ],
)
def test_errors_made_anywhere_are_json_with_one_string(service, method, path, status):
    with service.client() as client:
        answer = client.request(method, path)

    assert answer.status_code == status
    assert answer.headers["Content-Type"] == "application/json"
    if method != "HEAD":
        assert isinstance(answer.json()["detail"], str)
    assert answer.headers["X-Request-Id"]


def test_a_foreign_host_is_refused_in_json(service):
    with service.client() as client:
        answer = client.get("/ready", headers={"Host": "evil.example"})

    assert answer.status_code == 400
    assert isinstance(answer.json()["detail"], str)


def test_any_accept_header_is_answered(service):
    with service.client() as client:
        for accept in ("text/event-stream", "application/xml", "*/*", "nonsense"):
            answer = client.get("/api/profile-requests/", headers={"Accept": accept})
            assert answer.headers["Content-Type"] == "application/json"
            assert answer.status_code == 200


def test_health_needs_no_database_and_readiness_does(make_service):
    broken = make_service()
    broken.start_web()
    broken.database.take_away()

    with broken.client() as client:
        health, ready = client.get("/health"), client.get("/ready")
        asked = client.get("/api/profile-requests/")

    assert (health.status_code, health.json()["status"]) == (200, "ok")
    assert ready.status_code == 503
    assert asked.status_code == 503
    assert int(asked.headers["Retry-After"]) > 0
    assert broken.database.name not in asked.text
    assert "sqlite" not in asked.text.lower()


def test_a_base_url_with_a_slash_at_its_end_works(service):
    with service.client() as client:
        assert client.get(f"{service.base_url}//health").json()["status"] == "ok"
        assert client.get(f"{service.base_url}//api//profile-requests/").status_code == 200


def test_a_flood_is_refused_and_counted_in_one_row(make_service):
    strict = make_service(PROFILE_RATE="3/h")
    strict.start_web()
    with strict.client() as client:
        answers = [
            client.post(PATH, headers={"Prefer": "respond-async"}, **form()) for _ in range(8)
        ]
    with strict.client(cli_id="nobody") as client:
        strangers = [client.post(PATH, **form()).status_code for _ in range(5)]

    assert [answer.status_code for answer in answers] == [202] * 3 + [429] * 5
    last = answers[-1]
    assert int(last.headers["Retry-After"]) == last.json()["retry_after"] > 0
    assert strangers == [401] * 3 + [429] * 2
    counts = strict.rows(
        "SELECT identity, sum(count) AS n, count(*) AS rows_ FROM leaderboards_floodrefusal "
        "GROUP BY identity ORDER BY identity"
    )
    assert [(row["identity"], row["n"]) for row in counts] == [
        ("address:127.0.0.1", 2),
        ("user:id-alice", 5),
    ]
    assert all(row["rows_"] <= 2 for row in counts)  # a minute may have ended meanwhile
    assert strict.rows("SELECT count(*) AS n FROM profiling_profilerequest") == [{"n": 3}]


def test_a_kept_connection_outlives_a_pause_of_the_cli(service):
    """The CLI polls every 5 s on one connection and never repeats a poll."""
    with service.client(limits=httpx.Limits(keepalive_expiry=60)) as client:
        assert client.get("/health").is_success
        before = _connections(client)
        time.sleep(6)
        assert client.get("/health").is_success
        assert _connections(client) == before


def _connections(client):
    pool = client._transport._pool
    return [id(connection) for connection in pool.connections]


def test_the_process_restarts_on_the_same_address(make_service):
    again = make_service()
    again.start_web()
    again.stop("web")
    again.start_web()
    with again.client() as client:
        assert wait_for(lambda: client.get("/ready").is_success)


def test_static_files_are_served_once_they_are_collected(make_service):
    collected = make_service()
    (collected.folder / "static").mkdir()
    (collected.folder / "static" / "base.css").write_text("body {}")
    collected.start_web()

    with collected.client(cli_id=None) as client:
        style, missing = client.get("/static/base.css"), client.get("/static/other.css")

    assert (style.status_code, style.text) == (200, "body {}")
    assert style.headers["Content-Type"].startswith("text/css")
    assert missing.status_code == 404
    assert isinstance(missing.json()["detail"], str)


def test_the_schema_and_its_page_are_where_tools_look_for_them(service):
    with service.client(cli_id=None) as client:
        page, as_json, as_yaml = (
            client.get(path) for path in ("/docs", "/openapi.json", "/api/schema/")
        )

    assert (page.status_code, page.headers["Content-Type"]) == (200, "text/html; charset=utf-8")
    assert as_json.json() == yaml.safe_load(as_yaml.text)
    assert "/profile/{leaderboard}/{gpu}" in as_json.json()["paths"]
