"""People and leaderboards in the admin site."""

from __future__ import annotations

import pytest
from django.urls import reverse

from leaderboards.models import AuditEvent, PopcornUser
from tests.conftest import make_person
from tests.profiling.pages import page_of, text_of


@pytest.fixture
def site(client, olga):
    """A client that olga is signed in with."""
    client.force_login(olga)
    return client


def test_changing_a_leaderboard_is_recorded(site, olga, rowsum):
    form = {
        "description": "new text",
        "deadline_0": "2030-01-02",
        "deadline_1": "03:04:05",
        "gpu_types": '["H100"]',
        "visibility": "closed",
    }

    assert site.post(page_of(type(rowsum), of=rowsum.pk), form).status_code == 302

    rowsum.refresh_from_db()
    assert (rowsum.description, rowsum.gpu_types) == ("new text", ["H100"])
    assert rowsum.visibility == "closed"
    event = AuditEvent.objects.get(verb="leaderboard.changed")
    assert (event.actor, event.address) == (olga, "127.0.0.1")
    assert event.data["before"]["gpu_types"] == ["B200", "H100", "CPU"]


def test_the_secret_seed_of_a_leaderboard_is_shown_to_nobody(site, rowsum):
    page = text_of(site, page_of(type(rowsum), of=rowsum.pk))

    assert str(rowsum.secret_seed) not in page


def test_a_person_shows_the_beginning_of_a_digest_and_no_more(site, alice):
    digest = alice.client_ids.get().digest

    page = text_of(site, page_of(PopcornUser, of=alice.pk))

    assert f"{digest[:8]}…" in page
    assert digest not in page


def test_a_new_password_of_an_operator_is_recorded_without_it(site, olga):
    person = make_person("otto", is_staff=True)
    secret = "correct horse battery staple"

    answer = site.post(
        reverse("admin:auth_user_password_change", args=[person.pk]),
        {"password1": secret, "password2": secret, "usable_password": "true"},
    )

    assert answer.status_code == 302
    person.refresh_from_db()
    assert person.check_password(secret)
    event = AuditEvent.objects.get(verb="user.changed")
    assert (event.actor, event.subject_id) == (olga, str(person.pk))
    assert secret not in str(event.data)
