"""From `popcorn register` to an id that works: typed after signing in, looked at, confirmed."""

from __future__ import annotations

import pytest

from tests.server.identity.browser import Page

TYPE = "The id of your CLI"
CONFIRM = "Yes, activate it"


@pytest.fixture
def signed_in(provider, browser):
    """The page of a new person who has just signed in."""
    return browser.sign_in(provider)


def test_an_id_works_after_its_person_typed_and_confirmed_it(
    site, signed_in, browser, issue, works, person_rows
):
    cli_id = issue()
    assert works(cli_id) == 401

    checked = browser.submit(signed_in.form(TYPE), typed=cli_id)
    assert checked.status == 200
    assert "From the address 127.0.0.1 Your address now 127.0.0.1" in checked.text
    assert works(cli_id) == 401, "looking at an id changes nothing"
    done = browser.submit(checked.form(CONFIRM))

    assert done.status == 200
    assert "The id is active" in done.text
    assert works(cli_id) == 200
    (account,) = person_rows()
    (event,) = site.rows(
        "SELECT * FROM leaderboards_auditevent WHERE verb = 'user.client_id_activated'"
        " AND actor_id = ?",
        account["id"],
    )
    assert event["address"] == "127.0.0.1"
    assert event["subject_id"] == str(account["id"])


@pytest.mark.parametrize(
    "around",
    ["cli_id: {}", 'cli_id: "{}"\n', "  {}\t", "{}"],
    ids=["line", "quoted", "blank", "id"],
)
def test_an_id_may_be_pasted_with_the_line_of_the_file_around_it(signed_in, browser, issue, around):
    page = browser.submit(signed_in.form(TYPE), typed=around.format(issue()))

    assert page.status == 200
    assert page.form(CONFIRM)


def test_the_page_never_takes_an_id_from_its_address(signed_in, browser, issue):
    cli_id = issue()

    page = browser.open(f"/activate/?typed={cli_id}&id={cli_id}&cli_id={cli_id}")

    assert cli_id not in page.html
    assert page.form(TYPE)["fields"]["typed"] == ""
    for path in ("check", "confirm", "revoke", "sign-out", "sign-in/github"):
        assert browser.http.get(f"/activate/{path}?typed={cli_id}").status_code == 405


def test_the_confirmation_page_does_not_hold_the_id(signed_in, browser, issue):
    cli_id = issue()

    assert cli_id not in browser.submit(signed_in.form(TYPE), typed=cli_id).html


def test_nothing_is_activated_without_the_form_s_token(signed_in, browser, issue, works):
    cli_id = issue()
    confirm = browser.submit(signed_in.form(TYPE), typed=cli_id).form(CONFIRM)

    for forged in ({}, {"csrfmiddlewaretoken": "x" * 64}):
        fields = {"checked": confirm["fields"]["checked"]} | forged
        answer = browser.http.post(confirm["action"], data=fields)
        assert answer.status_code == 403
        assert "The form has expired" in Page(answer).text
    assert works(cli_id) == 401


def test_nothing_is_activated_by_who_is_not_signed_in(signed_in, browser, issue, works):
    cli_id = issue()
    confirm = browser.submit(signed_in.form(TYPE), typed=cli_id).form(CONFIRM)
    browser.submit(signed_in.form("Sign out"))

    assert browser.submit(confirm).status == 401
    assert works(cli_id) == 401


def test_a_confirmation_is_for_whom_it_was_shown_to(
    provider, signed_in, browser, make_browser, issue, works
):
    cli_id = issue()
    shown_to_one = browser.submit(signed_in.form(TYPE), typed=cli_id).form(CONFIRM)["fields"]
    provider.person = provider.person | {"id": provider.person["id"] + 100_000}
    other = make_browser()
    page = other.sign_in(provider)
    form = other.submit(page.form(TYPE), typed=issue()).form(CONFIRM)

    refused = other.submit(form, checked=shown_to_one["checked"])

    assert refused.status == 404
    assert works(cli_id) == 401


@pytest.mark.parametrize("why", ["never issued", "activated", "too old", "not an id"])
def test_an_id_that_waits_for_nobody_is_refused_in_the_same_words(
    site, signed_in, browser, issue, why
):
    typed = {"never issued": "11111111-1111-4111-8111-111111111111", "not an id": "hello"}.get(why)
    typed = typed or issue()
    if why == "activated":
        browser.submit(browser.submit(signed_in.form(TYPE), typed=typed).form(CONFIRM))
    if why == "too old":
        site.execute(
            "UPDATE leaderboards_clientid SET issued_at = '2020-01-01 00:00:00'"
            " WHERE user_id IS NULL"
        )

    page = browser.submit(signed_in.form(TYPE), typed=typed)

    assert page.status == 404
    assert "No such id waits to be activated" in page.text
    assert page.form(TYPE), "they can try again at once"


def test_an_id_that_two_people_confirm_is_the_first_one_s(
    provider, signed_in, browser, make_browser, issue, person_rows
):
    cli_id = issue()
    first_confirm = browser.submit(signed_in.form(TYPE), typed=cli_id).form(CONFIRM)
    provider.person = provider.person | {"id": provider.person["id"] + 100_000}
    other = make_browser()
    page = other.sign_in(provider)
    second_confirm = other.submit(page.form(TYPE), typed=cli_id).form(CONFIRM)

    assert browser.submit(first_confirm).status == 200
    assert other.submit(second_confirm).status == 404


def test_old_ids_are_revoked_on_request_and_end_at_once(signed_in, browser, issue, works):
    old, new, third = issue(), issue(), issue()
    browser.submit(browser.submit(signed_in.form(TYPE), typed=old).form(CONFIRM))
    page = browser.submit(signed_in.form(TYPE), typed=new)
    assert "Revoke my other CLI ids (1)" in page.text

    browser.submit(page.form(CONFIRM), revoke_others="on")

    assert (works(old), works(new)) == (401, 200)
    browser.submit(browser.submit(signed_in.form(TYPE), typed=third).form(CONFIRM))
    assert (works(new), works(third)) == (200, 200), "and only on request"


def test_a_single_id_is_revoked_from_the_list(signed_in, browser, issue, works):
    cli_id = issue()
    page = browser.submit(browser.submit(signed_in.form(TYPE), typed=cli_id).form(CONFIRM))

    after = browser.submit(page.form("Revoke"))

    assert works(cli_id) == 401
    assert "Your active ids" not in after.text


@pytest.mark.parametrize("key", ["1", "-1", "", "x", "9" * 30, "²"])
def test_nobody_revokes_the_id_of_another(signed_in, browser, issue, works, key):
    """Key 1 is alice's: tests/server/seed.py."""
    page = browser.submit(browser.submit(signed_in.form(TYPE), typed=issue()).form(CONFIRM))

    assert browser.submit(page.form("Revoke"), client_id=key).status == 200
    assert works("alice-cli-id") == 200


def test_a_ban_ends_a_session_and_the_next_sign_in(
    site, provider, signed_in, browser, issue, person_rows
):
    (account,) = person_rows()
    site.execute(
        "UPDATE leaderboards_popcornuser SET banned_at = '2026-01-01 00:00:00' WHERE id = ?",
        account["id"],
    )

    assert browser.submit(signed_in.form(TYPE), typed=issue()).status == 401
    assert browser.sign_in(provider).status == 403


def test_guessing_ids_is_limited(signed_in, browser):
    """At most 8 a minute here; 20 tries reach into two minutes at the most."""
    guess = "22222222-2222-4222-8222-222222222222"

    answers = [browser.send(signed_in.form(TYPE), typed=guess) for _ in range(20)]

    assert {answer.status_code for answer in answers} == {404, 429}
    limited = [answer for answer in answers if answer.status_code == 429]
    assert int(limited[0].headers["Retry-After"]) > 0


def test_what_a_provider_calls_a_person_is_text_on_the_page(provider, browser):
    provider.person = provider.person | {"login": '<script>alert("x")</script>\u202e\n'}

    page = browser.sign_in(provider)

    assert "<script" not in page.html
    assert "&lt;script&gt;" in page.html
    assert "\u202e" not in page.html


def test_pages_run_no_script_and_are_kept_by_nobody(provider, browser, signed_in, issue):
    pages = [
        browser.submit(signed_in.form(TYPE), typed=issue()),
        signed_in,
        browser.open("/auth/cli/github"),
    ]

    for page in pages:
        policy = page.headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy
        assert "script-src" not in policy
        assert "unsafe-inline" not in policy
        assert page.headers["Cache-Control"] == "no-store"
        assert page.headers["X-Frame-Options"] == "DENY"
        assert "style=" not in page.html
        assert "<script" not in page.html


def test_the_cookies_are_out_of_reach_for_scripts_and_other_sites(provider, make_browser):
    browser = make_browser()
    page = browser.open()
    begun = browser.post(page.form("GitHub"))
    redirect_uri, query = provider.consent(begun.headers["location"])
    back = browser.http.get(redirect_uri, params=query)

    set_cookies = [begun.headers["set-cookie"], *back.headers.get_list("set-cookie")]
    made = [each for each in set_cookies if "Max-Age=0" not in each]
    assert [each.partition("=")[0] for each in made] == ["sign_in", "activation"]
    assert all("HttpOnly" in each and "SameSite=Lax" in each for each in made)


def test_an_id_is_nowhere_in_the_database_in_clear(site, signed_in, browser, issue):
    cli_id = issue()
    browser.submit(browser.submit(signed_in.form(TYPE), typed=cli_id).form(CONFIRM))

    assert cli_id not in site.database.contents()
    assert cli_id not in site.log()
