"""Every address with an id in it, asked by somebody who may not know that the id exists."""

from __future__ import annotations

import re
import uuid

import pytest
import yaml
from django.test import Client

from leaderboards.models import AuditEvent
from profiling.addresses import file_name
from profiling.models import ProfileRequest
from runners.models import Job
from tests.leaderboards.conftest import client_of
from tests.profiling.conftest import captured  # noqa: F401  fixture
from tests.server.service import ROOT

SCHEMA = yaml.safe_load((ROOT / "docs/openapi.yaml").read_text())
# Not somebody's: boards, GPUs and modes are everybody's, and the admin API has its token.
EVERYBODYS = {"leaderboard", "gpu", "mode"}
PRIVATE = [
    (method, path)
    for path, methods in SCHEMA["paths"].items()
    for method in methods
    if set(re.findall(r"{(\w+)}", path)) - EVERYBODYS and not path.startswith("/admin/")
]


def filled(path: str, request: ProfileRequest, *, unknown: bool = False) -> str:
    """The address of something of alice's, or one that is like it and of nothing."""
    number = 10**9 if unknown else request.submission_id
    key = uuid.UUID(int=7) if unknown else request.pk
    values = {"id": number if path.startswith("/user/submissions") else key}
    values |= {"index": 0, "name": "details.txt"}
    if path.startswith("/jobs/"):
        values["name"] = file_name(request, request.captures.get(benchmark_index=0), ".zip")
    return path.format(**values)


def test_there_are_such_addresses():
    assert len(PRIVATE) >= 16
    assert ("get", "/api/profile-requests/{id}/captures/{index}/archive/") in PRIVATE


@pytest.mark.parametrize(("method", "path"), PRIVATE)
def test_a_stranger_hears_what_one_hears_of_nothing(captured, bob, method, path):  # noqa: F811
    before = list(Job.objects.values()), AuditEvent.objects.count()

    def ask(**which):
        return getattr(client_of("bob"), method)(filled(path, captured, **which))

    answer, nothing = ask(), ask(unknown=True)

    assert (answer.status_code, nothing.status_code) == (404, 404)
    assert answer.content == nothing.content
    assert (list(Job.objects.values()), AuditEvent.objects.count()) == before
    captured.refresh_from_db()
    assert captured.deleted_at is None


@pytest.mark.parametrize(("method", "path"), PRIVATE)
def test_nobody_without_an_id_is_told_anything(captured, method, path):  # noqa: F811
    answer = getattr(Client(), method)(filled(path, captured))

    assert answer.status_code in (400, 401)
    assert set(answer.json()) <= {"code", "detail", "errors"}


@pytest.mark.parametrize(("method", "path"), PRIVATE)
def test_these_addresses_are_those_of_something_that_its_owner_reaches(
    captured,  # noqa: F811
    method,
    path,
):
    if method == "get" and "stream" not in path:
        answer = client_of("alice").head(filled(path, captured))
        answer.close()
        assert answer.status_code == 200
