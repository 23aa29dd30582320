from __future__ import annotations

import io
import uuid

import pytest
from django.core.management import CommandError, call_command

from leaderboards.models import AuditEvent
from profiling.models import ProfileRequest
from tests.profiling.orders import submit


@pytest.fixture
def request_of_alice(alice, rowsum) -> ProfileRequest:
    return submit(alice)


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
