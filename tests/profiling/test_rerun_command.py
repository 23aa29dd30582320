from __future__ import annotations

import io
import uuid

import pytest
from django.core.management import CommandError, call_command

from leaderboards.audit import NO_REQUEST
from leaderboards.models import AuditEvent
from profiling import actions
from profiling.models import ProfileRequest


@pytest.fixture
def request_of_alice(alice, rowsum) -> ProfileRequest:
    order = actions.ProfileOrder(
        leaderboard_name="rowsum", gpu_name="H100", file_name="a.py", content=b"pass\n"
    )
    return actions.submit_request(
        order, actor=alice, origin=ProfileRequest.Origin.CLI, context=NO_REQUEST
    )


def rerun(*ids: object) -> tuple[list[str], str, str]:
    """Printed ids, what stood on standard error, and the final error."""
    out, err, ended = io.StringIO(), io.StringIO(), ""
    try:
        call_command("rerun_profile", *map(str, ids), stdout=out, stderr=err)
    except CommandError as error:
        ended = f"{error.returncode}: {error}"
    return out.getvalue().split(), err.getvalue(), ended


def test_it_prints_the_ids_of_new_requests(request_of_alice, alice):
    printed, said, ended = rerun(request_of_alice.pk, request_of_alice.pk)

    assert (len(printed), said, ended) == (2, "", "")
    for key in printed:
        made = ProfileRequest.objects.get(pk=key)
        assert (made.rerun_of, made.origin, made.user) == (request_of_alice, "command", alice)
    asked = AuditEvent.objects.filter(verb="profile.rerun_asked")
    assert set(asked.values_list("actor", "actor_label")) == {(None, "system")}


def test_it_names_bad_ids_and_does_the_others(request_of_alice):
    unknown = uuid.uuid4()

    printed, said, ended = rerun("no-id", request_of_alice.pk, unknown)

    assert ProfileRequest.objects.get(pk=printed[0]).rerun_of == request_of_alice
    assert "no-id: this is not the id of a request" in said
    assert f"{unknown}: there is no such request" in said
    assert ended == "1: 2 of 3 could not be measured again"
