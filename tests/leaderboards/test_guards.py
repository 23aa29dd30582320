"""Which of two ids counts, and what each guard does without one: wire-contract.md, 1.3."""

from __future__ import annotations

import pytest
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.request import Request
from rest_framework.test import APIRequestFactory

from leaderboards.actions import create_web_id
from leaderboards.api.authentication import (
    ClientIdAuthentication,
    CliIdAuthentication,
    MissingClientId,
    OptionalClientId,
)


def ask(guard, **headers):
    request = Request(APIRequestFactory().get("/", headers=headers))
    return guard().authenticate(request)


def cli(value):
    return {"X-Popcorn-Cli-Id": value}


def web(value):
    return {"X-Web-Auth-Id": value}


@pytest.mark.parametrize("guard", [ClientIdAuthentication, OptionalClientId])
def test_the_id_of_a_browser_wins_over_that_of_a_cli(alice, bob, guard):
    web_id = create_web_id(bob)

    user, auth = ask(guard, **cli("alice-cli-id"), **web(web_id))
    assert (user, auth.kind) == (bob, "web")

    user, auth = ask(guard, **cli("alice-cli-id"))
    assert (user, auth.kind) == (alice, "cli")

    with pytest.raises(AuthenticationFailed):
        ask(guard, **cli("alice-cli-id"), **web("unknown"))


def test_an_id_is_good_for_its_own_header_alone(alice):
    web_id = create_web_id(alice)

    for headers in (cli(web_id), web("alice-cli-id")):
        with pytest.raises(AuthenticationFailed):
            ask(ClientIdAuthentication, **headers)


def test_the_cli_only_guard_does_not_look_at_the_browser_s_header(alice, bob):
    user, _ = ask(CliIdAuthentication, **cli("alice-cli-id"), **web(create_web_id(bob)))
    assert user == alice

    with pytest.raises(MissingClientId):
        ask(CliIdAuthentication, **web(create_web_id(bob)))


def test_without_an_id_a_guard_refuses_or_lets_pass_as_nobody(db):
    for guard in (CliIdAuthentication, ClientIdAuthentication):
        with pytest.raises(MissingClientId):
            ask(guard)
    assert ask(OptionalClientId) is None

    with pytest.raises(AuthenticationFailed):
        ask(OptionalClientId, **cli("unknown"))


def test_who_was_switched_off_is_nobody(alice):
    alice.is_active = False
    alice.save()

    with pytest.raises(AuthenticationFailed):
        ask(ClientIdAuthentication, **cli("alice-cli-id"))
