"""Who downloaded what, and each request's trail in one call."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.core.signals import request_finished
from django.db import close_old_connections
from django.test import Client
from django.utils import timezone

from leaderboards.models import AuditEvent
from profiling.links import new_link
from tests.profiling.evidence import finish
from tests.profiling.orders import submit

ALICE = {"X-Popcorn-Cli-Id": "alice-cli-id", "User-Agent": "popcorn/1.0"}
BOB = {"X-Popcorn-Cli-Id": "bob-cli-id"}


def api(request, rest: str) -> str:
    return f"/api/profile-requests/{request.pk}/{rest}"


def fetch(client: Client, path: str, **headers: str) -> int:
    answer = client.get(path, headers=headers)
    # As Django's client does it: the end of a request would close the test's own connection.
    request_finished.disconnect(close_old_connections)
    answer.close()
    request_finished.connect(close_old_connections)
    return answer.status_code


def downloads() -> list[tuple[str | None, str, str]]:
    rows = AuditEvent.objects.filter(verb="profile.downloaded").order_by("pk")
    return [(row.actor.username if row.actor else None, row.actor_label, row.data) for row in rows]


def test_each_file_that_its_owner_downloads_is_one_row_an_hour(captured, client):
    for _ in range(3):
        assert fetch(client, api(captured, "captures/0/archive/"), **ALICE) == 200
        assert fetch(client, api(captured, "captures/0/details.txt"), **ALICE) == 200

    label = captured.user.actor_label
    assert downloads() == [
        ("alice", label, {"capture": "profile.0", "file": "archive"}),
        ("alice", label, {"capture": "profile.0", "file": "details.txt"}),
    ]
    row = AuditEvent.objects.filter(verb="profile.downloaded").first()
    assert (row.subject_id, row.address, row.client_version) == (
        str(captured.pk),
        "127.0.0.1",
        "popcorn/1.0",
    )


def test_the_next_hour_has_a_row_of_its_own(captured, client, alice):
    AuditEvent.objects.create(
        created_at=timezone.now() - timedelta(hours=1),
        verb="profile.downloaded",
        actor=alice,
        actor_label=alice.actor_label,
        subject_kind="profilerequest",
        subject_id=str(captured.pk),
        data={"capture": "profile.0", "file": "archive"},
    )

    fetch(client, api(captured, "captures/0/archive/"), **ALICE)

    assert len(downloads()) == 2


def test_operators_and_holders_of_the_link_are_told_apart(captured, client, operator):
    token = new_link(captured).token

    assert fetch(operator, api(captured, "captures/0/archive/")) == 200
    assert fetch(client, f"/profile/{token}/captures/0/archive") == 200
    assert fetch(client, f"/profile/{token}/captures/0/report") == 200
    assert fetch(client, f"/profile/{token}/captures/0/report") == 200

    assert [(who, label, data["file"]) for who, label, data in downloads()] == [
        ("olga", "olga (id-olga)", "archive"),
        (None, "holder of the link", "archive"),
        (None, "holder of the link", "report"),
    ]


def test_an_artifact_of_the_brev_protocol_is_a_download_too(captured, client):
    finish(captured.job)
    (artifact,) = client.get(f"/jobs/{captured.pk}", headers=ALICE).json()["artifacts"]

    assert fetch(client, artifact["url"], **ALICE) == 200

    assert [data["file"] for _, _, data in downloads()] == ["archive"]


def test_what_sends_no_file_is_no_download(captured, client):
    path = api(captured, "captures/0/archive/")
    answer = client.head(path, headers=ALICE)

    assert fetch(client, path, **ALICE, **{"If-None-Match": answer.headers["ETag"]}) == 304
    assert fetch(client, api(captured, "captures/1/archive/"), **ALICE) == 404
    assert fetch(client, path, **BOB) in (401, 404)

    assert downloads() == []


def test_the_owner_reads_the_trail_without_the_addresses_of_others(captured, client, operator):
    fetch(operator, api(captured, "captures/0/archive/"))
    fetch(client, api(captured, "captures/0/archive/"), **ALICE)

    answer = client.get(api(captured, "audit/"), headers=ALICE).json()

    rows = {(row["verb"], row["actor"]): row for row in answer["results"]}
    assert answer["results"][0]["verb"] == "profile.accepted"
    mine = rows["profile.downloaded", "id-alice"]
    assert (mine["address"], mine["client_version"]) == ("127.0.0.1", "popcorn/1.0")
    assert mine["data"] == {"capture": "profile.0", "file": "archive"}
    others = rows["profile.downloaded", "id-olga"]
    assert (others["address"], others["request_id"], others["client_version"]) == (None,) * 3


def test_the_owner_is_not_told_the_name_of_the_dispatchers_machine(captured, client, operator):
    finish(captured.job)

    ends = {
        who: client_.get(api(captured, "audit/"), headers=headers).json()["results"][-1]
        for who, client_, headers in (("owner", client, ALICE), ("operator", operator, {}))
    }

    assert {end["verb"] for end in ends.values()} == {"profile.succeeded"}
    assert ends["owner"]["actor_label"] == "dispatcher"
    assert ends["operator"]["actor_label"] == "dispatcher test"


def test_operators_read_all_of_it_and_strangers_nothing(captured, client, operator, bob, alice):
    fetch(client, api(captured, "captures/0/archive/"), **ALICE)
    other = submit(alice)

    seen = operator.get(api(captured, "audit/")).json()["results"]

    assert seen[-1]["address"] == "127.0.0.1"
    assert all(row["data"].get("rerun_of") != str(other.pk) for row in seen)
    assert client.get(api(captured, "audit/"), headers=BOB).status_code == 404
    assert client.get(api(captured, "audit/")).status_code == 400


@pytest.mark.parametrize("rows", [1, 40])
def test_the_trail_takes_as_many_queries_for_many_rows_as_for_one(
    captured, operator, rows, olga, django_assert_num_queries
):
    for number in range(rows):
        AuditEvent.objects.create(
            verb="x",
            actor=olga,
            subject_kind="profilerequest",
            subject_id=str(captured.pk),
            data={"number": number},
        )

    with django_assert_num_queries(4):
        answer = operator.get(api(captured, "audit/"))

    assert len(answer.json()["results"]) >= rows
