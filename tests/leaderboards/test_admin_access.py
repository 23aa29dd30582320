"""Activating, revoking and banning in the admin site, by an operator with the right to."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import Permission
from django.urls import reverse

from leaderboards.identity.client_ids import issue_cli_id
from leaderboards.models import AuditEvent, ClientId, digest_client_id
from tests.conftest import make_person


@pytest.fixture
def site(client, olga):
    """A client that olga is signed in with."""
    client.force_login(olga)
    return client


@pytest.fixture
def page(alice):
    """The address of alice's page."""
    return reverse("admin:leaderboards_popcornuser_access", args=[alice.pk])


def do(site, page, deed, **fields):
    """What the operator is told."""
    answer = site.post(page, {"deed": deed} | fields, follow=True)
    assert answer.status_code == 200
    return [str(message) for message in answer.context["messages"]]


def event_of(verb):
    event = AuditEvent.objects.get(verb=verb)
    return event.actor.username, event.address


def test_a_person_s_form_leads_to_the_page(site, alice, page):
    form = site.get(reverse("admin:leaderboards_popcornuser_change", args=[alice.pk]))

    assert page in form.content.decode()


def test_an_operator_activates_the_id_that_they_type(site, page, alice):
    cli_id = issue_cli_id("203.0.113.7")

    assert do(site, page, "activate", typed=cli_id) == [
        "The id that 203.0.113.7 asked for is active."
    ]

    assert ClientId.objects.valid().get(digest=digest_client_id(cli_id)).user == alice
    assert event_of("user.client_id_activated") == ("olga", "127.0.0.1")
    assert cli_id not in site.get(page).content.decode()


def test_a_mistyped_id_is_told_and_changes_nothing(site, page, alice):
    (said,) = do(site, page, "activate", typed="11111111-1111-4111-8111-111111111111")

    assert said.startswith("no such id waits")
    assert alice.client_ids.count() == 1


def test_an_operator_revokes_an_id_of_that_person_alone(site, page, alice, bob):
    do(site, page, "revoke", digest=digest_client_id("bob-cli-id"))
    assert ClientId.objects.valid().count() == 3

    do(site, page, "revoke", digest=digest_client_id("alice-cli-id"))
    assert not ClientId.objects.valid().filter(user=alice).exists()
    assert event_of("user.client_id_revoked") == ("olga", "127.0.0.1")


def test_an_operator_bans_with_a_reason_and_lifts_the_ban(site, page, alice):
    do(site, page, "ban", reason="<b>forged</b>")
    alice.refresh_from_db()
    assert alice.banned_at is not None
    assert "&lt;b&gt;forged&lt;/b&gt;" in site.get(page).content.decode()

    do(site, page, "unban")
    alice.refresh_from_db()
    assert (alice.banned_at, alice.ban_reason) == (None, "")
    assert event_of("user.banned") == event_of("user.unbanned") == ("olga", "127.0.0.1")


def test_a_form_without_a_deed_does_nothing(site, page, alice):
    assert do(site, page, "") == ["Nothing was asked for."]


def test_only_who_may_change_people_reaches_the_page(client, alice, page):
    viewer = make_person("vera", is_staff=True)
    viewer.user_permissions.add(Permission.objects.get(codename="view_popcornuser"))

    assert client.get(page).status_code == 302
    client.force_login(alice)
    assert client.post(page, {"deed": "unban"}).status_code == 302
    client.force_login(viewer)
    assert client.post(page, {"deed": "unban"}).status_code == 403
    assert not AuditEvent.objects.exists()
