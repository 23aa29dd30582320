"""The API's cost, and who may read: with Django's client, since none of it is a stream."""

from __future__ import annotations

import json

import pytest
from django.contrib.auth.models import Permission
from django.utils import timezone

from leaderboards.models import ClientId
from tests.conftest import make_person
from tests.profiling.orders import refuse, submit

LIST = "/api/profile-requests/"
ALICE = {"X-Popcorn-Cli-Id": "alice-cli-id"}


@pytest.fixture
def used(alice):
    """alice's id was used just now, so that no request notes it."""
    ClientId.objects.filter(user=alice).update(last_used_at=timezone.now())


def test_the_list_takes_as_many_queries_for_nine_requests_as_for_one(
    client, alice, rowsum, used, django_assert_num_queries
):
    submit(alice)
    with django_assert_num_queries(5) as one:
        client.get(LIST, headers=ALICE)
    for _ in range(8):
        submit(alice)

    with django_assert_num_queries(len(one)):
        answer = client.get(LIST, headers=ALICE)

    assert [row["queue_position"] for row in answer.json()["results"]] == list(range(9, 0, -1))


def test_the_facts_of_a_request_take_a_fixed_number_of_queries(
    client, captured, used, django_assert_num_queries
):
    with django_assert_num_queries(7):  # two of them ask for the queue
        answer = client.get(f"{LIST}{captured.pk}/", headers=ALICE)

    assert [capture["status"] for capture in answer.json()["captures"]] == [
        "captured",
        "failed",
        "failed",
    ]
    json.loads(answer.content, parse_constant=pytest.fail)


def test_refused_and_deleted_requests_are_not_shown_to_their_owner(client, alice, captured):
    refused = refuse(alice)
    captured.deleted_at = timezone.now()
    captured.save()

    answers = [client.get(f"{LIST}{each.pk}/", headers=ALICE) for each in (refused, captured)]

    assert [answer.status_code for answer in answers] == [404, 404]
    assert client.get(LIST, headers=ALICE).json()["results"] == []


def test_an_operator_reads_only_with_the_permission_to_see_requests(client, captured):
    otto = make_person("otto", is_staff=True)
    client.force_login(otto)
    path = f"{LIST}{captured.pk}/"
    before = client.get(path).status_code

    otto.user_permissions.add(Permission.objects.get(codename="view_profilerequest"))

    assert (before, client.get(path).status_code) == (404, 200)


def test_a_session_of_somebody_who_is_no_operator_is_no_identity(client, alice, captured):
    client.force_login(alice)

    assert client.get(f"{LIST}{captured.pk}/").status_code == 400


def test_a_deactivated_person_is_unknown(client, alice):
    alice.is_active = False
    alice.save()

    assert client.get(LIST, headers=ALICE).status_code == 401
