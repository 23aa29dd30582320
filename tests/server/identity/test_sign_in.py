"""Signing in at a provider, on its good days and its bad ones (FR-34), with states of ours (FR-35)."""

from __future__ import annotations

import base64
import json
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from kernelbot_site.asgi import VIEW_THREADS
from tests.server.identity.browser import Browser
from tests.server.identity.provider import token_form
from tests.server.service import wait_for

JSON = "application/json"


@pytest.mark.parametrize("label", ["Discord", "GitHub"])
def test_a_first_sign_in_makes_an_account_of_the_provider_s_person(
    site, provider, browser, person_rows, label
):
    page = browser.sign_in(provider, label)

    assert page.status == 200
    assert f"Signed in as {provider.person['login']}" in page.text
    (account,) = person_rows()
    assert account["user_id"] == str(provider.person["id"])
    assert account["display_name"] == provider.person["login"]
    assert not account["is_staff"]
    events = site.rows(
        "SELECT verb FROM leaderboards_auditevent WHERE actor_id = ? ORDER BY id", account["id"]
    )
    assert [event["verb"] for event in events] == ["user.registered", "user.signed_in"]


def test_a_second_sign_in_finds_the_account_of_the_first(provider, make_browser, person_rows):
    make_browser().sign_in(provider)
    page = make_browser().sign_in(provider)

    assert page.status == 200
    assert len(person_rows()) == 1


def test_the_same_number_at_two_providers_is_two_people(provider, make_browser, person_rows):
    make_browser().sign_in(provider, "GitHub")
    make_browser().sign_in(provider, "Discord")

    accounts = person_rows()

    assert len(accounts) == 2
    assert len({account["user_id"] for account in accounts}) == 2


def test_fr_34_the_redirect_address_is_the_public_one_whoever_asks(site, provider, make_browser):
    browser = make_browser(**{"X-Forwarded-Proto": "https", "X-Forwarded-Host": "evil.example"})

    redirect_uri, query = provider.consent(browser.go_to_provider())
    page = browser.come_back(redirect_uri, query)

    assert redirect_uri == f"{site.base_url}/auth/cli/github"
    assert page.status == 200


@pytest.mark.parametrize(
    ("endpoint", "how", "status"),
    [
        ("token", (200, JSON, '{"error": "bad_verification_code"}'), 400),
        ("token", (400, JSON, '{"error": "invalid_grant"}'), 400),
        ("token", (200, "application/x-www-form-urlencoded", "error=bad_verification_code"), 400),
        ("token", (401, JSON, '{"error": "invalid_client"}'), 502),
        ("token", (200, JSON, '{"error": {"MARK-SECRET": 1}}'), 502),
        ("token", (200, JSON, "{}"), 502),
        ("token", (200, JSON, "[1]"), 502),
        ("token", (200, JSON, "null"), 502),
        ("token", (200, "text/html", "<html><p>MARK-SECRET busy</p></html>"), 502),
        ("token", (500, "text/plain", "MARK-SECRET broke"), 502),
        ("token", (503, JSON, '{"access_token": "x", "token_type": "bearer"}'), 502),
        ("token", 30, 502),
        ("profile", (401, JSON, '{"message": "Bad credentials"}'), 502),
        ("profile", (403, JSON, '{"message": "rate limit"}'), 502),
        ("profile", (200, JSON, '{"login": "ada", "username": "ada"}'), 502),
        ("profile", (200, JSON, '{"id": null, "login": "ada", "username": "ada"}'), 502),
        ("profile", (200, JSON, '{"id": true, "login": "ada", "username": "ada"}'), 502),
        ("profile", (200, JSON, '{"id": 5, "login": 5, "username": 5}'), 502),
        ("profile", (200, JSON, "[]"), 502),
        ("profile", (200, "text/html", "<html>"), 502),
        ("profile", (302, "text/plain", ""), 502),
    ],
)
def test_fr_34_a_provider_s_bad_day_is_a_short_page_and_makes_no_account(
    provider, browser, person_rows, endpoint, how, status
):
    setattr(provider, endpoint, how)

    page = browser.sign_in(provider)

    assert page.status == status
    assert "Go to the activation page" in page.text
    assert "MARK-SECRET" not in page.html
    assert person_rows() == []
    provider.behave()
    assert browser.sign_in(provider).status == 200


def test_fr_34_waiting_for_a_provider_keeps_nobody_else_waiting(provider, make_service):
    """More sign-ins hang than there are threads for views, and other requests are answered."""
    service = make_service(**provider.settings, PROVIDER_LIMIT_S=50, AUTH_RATE="1000/m")
    service.start_web()
    browsers = [Browser(service.base_url) for _ in range(VIEW_THREADS + 2)]
    trips = [(each, *provider.consent(each.go_to_provider())) for each in browsers]
    provider.token = threading.Event()
    provider.asked.clear()

    with ThreadPoolExecutor(len(trips)) as pool, service.client() as client:
        pages = [pool.submit(each.come_back, *way) for each, *way in trips]
        try:
            wait_for(lambda: len(provider.asked) == len(trips))
            answers = [client.get("/ready").status_code for _ in range(2 * VIEW_THREADS)]
        finally:
            provider.token.set()
        statuses = [page.result().status for page in pages]
    for browser in browsers:
        browser.close()

    assert answers == [200] * len(answers)
    assert statuses == [200] * len(trips), "they were answered before the provider gave up waiting"


def test_fr_34_a_token_in_form_encoding_is_read(provider, browser):
    redirect_uri, query = provider.consent(browser.go_to_provider())
    provider.token = (200, "application/x-www-form-urlencoded", token_form())

    assert browser.come_back(redirect_uri, query).status == 200


@pytest.mark.parametrize(
    "change",
    [
        {"code": None, "error": "access_denied"},
        {"code": None},
        {"code": ""},
        {"code": None, "state": None},
        {"state": None},
        {"state": ""},
    ],
)
def test_fr_34_a_return_without_what_it_needs_is_a_400_that_echoes_nothing(
    provider, browser, person_rows, change
):
    redirect_uri, query = provider.consent(browser.go_to_provider())
    changed = {k: v for k, v in (query | change).items() if v is not None}

    page = browser.come_back(redirect_uri, changed)

    assert page.status == 400
    assert query["code"] not in page.html
    assert query["state"] not in page.html
    assert "Go to the activation page" in page.text
    assert person_rows() == []


def test_fr_34_a_state_works_once(provider, browser, person_rows):
    redirect_uri, query = provider.consent(browser.go_to_provider())

    first = browser.come_back(redirect_uri, query)
    second = browser.come_back(redirect_uri, query)

    assert (first.status, second.status) == (200, 400)
    assert len(person_rows()) == 1
    assert "Signed in" in browser.open().text  # pressing "back" does not sign anybody out


def test_fr_35_of_two_returns_at_once_one_gets_the_state(provider, browser, person_rows):
    redirect_uri, query = provider.consent(browser.go_to_provider())
    provider.token = 0.2  # seconds, so that both are under way

    with ThreadPoolExecutor(2) as pool:
        pages = list(pool.map(lambda _: browser.come_back(redirect_uri, query), range(2)))

    assert sorted(page.status for page in pages) == [200, 400]
    assert len(person_rows()) == 1


def test_two_first_sign_ins_at_once_make_one_account(provider, make_browser, person_rows):
    browsers = [make_browser() for _ in range(4)]
    trips = [(each, *provider.consent(each.go_to_provider())) for each in browsers]

    with ThreadPoolExecutor(4) as pool:
        pages = list(pool.map(lambda trip: trip[0].come_back(*trip[1:]), trips))

    assert [page.status for page in pages] == [200] * 4
    assert len(person_rows()) == 1


def stock_state(cli_id):
    """What popcorn-cli sends as its state: wire-contract.md, 3.2."""
    text = json.dumps({"cli_id": cli_id, "is_reset": False})
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


@pytest.mark.parametrize("begun", [True, False])
def test_fr_35_the_state_of_the_stock_cli_is_a_400_that_names_the_way(
    site, provider, browser, issue, works, begun
):
    cli_id = issue()
    if begun:
        browser.go_to_provider()

    page = browser.come_back(
        f"{site.base_url}/auth/cli/github", {"code": "a-code", "state": stock_state(cli_id)}
    )

    assert page.status == 400
    assert "type the id there" in page.text
    assert works(cli_id) == 401


@pytest.mark.parametrize(
    "forge",
    [
        lambda state: ("B" if state[0] == "A" else "A") + state[1:],
        lambda state: state + "=",
        lambda state: "A" * 50_000,
        lambda state: "%%%not base64%%%",
        lambda state: base64.urlsafe_b64encode(b"[1, 2]").decode(),
        lambda state: "\0",
        lambda state: "ünïcödé",
    ],
    ids=["altered", "longer", "50 kB", "no base64", "a list", "NUL", "not ASCII"],
)
def test_fr_35_a_foreign_state_is_a_400_and_binds_nothing(provider, browser, person_rows, forge):
    redirect_uri, query = provider.consent(browser.go_to_provider())

    page = browser.come_back(redirect_uri, query | {"state": forge(query["state"])})

    assert page.status == 400
    assert person_rows() == []
    assert browser.come_back(redirect_uri, query).status == 200, "the true one still works"


def test_fr_35_a_state_is_bound_to_the_browser_that_began(provider, make_browser, person_rows):
    mine, theirs = make_browser(), make_browser()
    redirect_uri, query = provider.consent(mine.go_to_provider())
    theirs.go_to_provider()

    stolen = theirs.come_back(redirect_uri, query)

    assert stolen.status == 400
    assert person_rows() == []
    assert mine.come_back(redirect_uri, query).status == 200, "the thief cannot spoil it"


def test_fr_35_a_state_is_for_the_provider_it_was_begun_at(site, provider, browser):
    _, query = provider.consent(browser.go_to_provider("GitHub"))

    assert browser.come_back(f"{site.base_url}/auth/cli/discord", query).status == 400


def test_fr_35_a_state_is_over_after_a_while_and_cleared_away_by_the_next(site, provider, browser):
    site.execute("DELETE FROM leaderboards_loginattempt")
    redirect_uri, query = provider.consent(browser.go_to_provider())
    site.execute("UPDATE leaderboards_loginattempt SET expires_at = '2020-01-01 00:00:00'")

    assert browser.come_back(redirect_uri, query).status == 400
    browser.go_to_provider()
    assert len(site.rows("SELECT * FROM leaderboards_loginattempt")) == 1


def test_a_client_that_prefers_json_gets_json(site, make_browser):
    browser = make_browser(Accept=JSON)

    answer = browser.http.get("/auth/cli/github?code=c&state=s")

    assert answer.status_code == 400
    assert answer.headers["Content-Type"] == JSON
    assert answer.json()["code"] == "foreign_state"


def test_an_unknown_provider_is_a_400(browser):
    assert browser.open("/auth/cli/gitlab?code=c&state=s").status == 400


def test_a_provider_that_is_not_set_up_is_not_offered(service):
    browser = Browser(service.base_url)

    page = browser.open()
    callback = browser.open("/auth/cli/discord?code=c&state=s")
    browser.close()

    assert "Ask its operators" in page.text
    assert "Sign in with" not in page.text
    assert callback.status == 503
    assert "not set up" in callback.text


def test_fr_37_no_secret_reaches_the_log_the_database_or_the_audit_trail(
    site, provider, make_browser
):
    """The site logs at DEBUG, and its client secret ended with a newline."""
    assert make_browser().sign_in(provider, "Discord").status == 200
    for endpoint in ("token", "profile"):
        provider.behave()
        setattr(provider, endpoint, (500, "text/plain", "MARK-SECRET"))
        assert make_browser().sign_in(provider).status == 502

    assert "github, profile: 500" in site.log()
    assert "MARK-SECRET" not in site.log()
    assert "MARK-SECRET" not in site.database.contents()
