"""What can be guessed is tried only so often. By the hour here, so that no minute ends meanwhile."""

from __future__ import annotations

import pytest
from django.core.cache import cache
from django.test import Client

from leaderboards.models import FloodRefusal
from tests.leaderboards.conftest import client_of


@pytest.fixture(autouse=True)
def few(settings, db):
    settings.AUTH_RATE = settings.ACTIVATION_RATE = "4/h"
    cache.clear()
    yield
    cache.clear()


def statuses(post, times=9):
    return [post().status_code for _ in range(times)]


def test_passwords_of_operators_are_tried_so_often_and_no_more(django_user_model):
    django_user_model.objects.create_superuser("root", password="correct horse")
    sent = {"username": "root", "password": "wrong"}

    answers = statuses(lambda: Client().post("/operators/login/", sent))
    right = Client().post("/operators/login/", sent | {"password": "correct horse"})

    assert answers[:4] == [200] * 4
    assert answers[-1] == right.status_code == 429
    assert int(right["Retry-After"]) > 0
    assert "operator_session" not in right.cookies
    assert Client().get("/operators/login/").status_code == 200
    assert FloodRefusal.objects.get(route="operator-login").identity == "address:127.0.0.1"


def test_an_operator_gets_in_with_the_right_password(django_user_model):
    django_user_model.objects.create_superuser("root", password="correct horse")

    answer = Client().post(
        "/operators/login/?next=/operators/", {"username": "root", "password": "correct horse"}
    )

    assert (answer.status_code, answer["Location"]) == (302, "/operators/")
    assert answer.cookies["operator_session"]["httponly"]


def test_the_login_form_needs_its_token():
    guest = Client(enforce_csrf_checks=True)

    assert guest.post("/operators/login/", {"username": "a", "password": "b"}).status_code == 403


def test_invite_codes_are_tried_so_often_by_a_person_and_no_more(alice, bob):
    def join(name):
        return client_of(name).post("/user/join", {"code": "x"}, content_type="application/json")

    answers = statuses(lambda: join("alice"))

    assert 429 not in answers[:4]
    assert answers[-1] == 429
    assert join("bob").status_code == answers[0], "each person has a count of their own"
