"""The schema of the HTTP API: kept in docs/, served, and true where an answer is compared with it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml
from django.contrib.staticfiles import finders
from django.core.management import call_command
from django.test import Client
from django.urls import URLResolver, get_resolver

from leaderboards.submitting import SubmissionOrder, submit
from runners.gpu.contract import Mode
from tests.profiling import orders

KEPT = Path(__file__).resolve().parents[2] / "docs/openapi.yaml"
CLI_ID = {"X-Popcorn-Cli-Id": "alice-cli-id"}


@pytest.fixture(scope="module")
def schema():
    return yaml.safe_load(KEPT.read_text())


def operations(schema):
    return [
        (f"{method} {path}", operation)
        for path, methods in schema["paths"].items()
        for method, operation in methods.items()
    ]


def test_the_kept_schema_is_what_the_views_give_without_a_warning(tmp_path):
    fresh = tmp_path / "openapi.yaml"
    call_command("spectacular", "--validate", "--fail-on-warn", "--file", str(fresh))

    assert fresh.read_text() == KEPT.read_text(), "run `make openapi` and look at the difference"


def routes(patterns=None, before=""):
    for each in patterns or get_resolver().url_patterns:
        address = before + str(each.pattern)
        if isinstance(each, URLResolver):
            yield from routes(each.url_patterns, address)
        else:
            yield "/" + re.sub(r"<(?:[a-z_]+:)?([a-z_]+)>", r"{\1}", address)


def test_every_address_is_in_the_schema_or_is_no_part_of_the_api(schema):
    told = {re.sub(r"{\w+}", "{}", path) for path in schema["paths"]}

    untold = {
        path
        for path in routes()
        if re.sub(r"{\w+}", "{}", path) not in told and not path.startswith("/operators/")
    }
    assert untold == {
        # About the process, and about the API.
        "/ready",
        "/metrics",
        "/api/schema/",
        "/openapi.json",
        "/docs",
        # Pages for people, and where a provider sends them back to.
        "/activate",
        "/activate/",
        "/activate/sign-in/{provider}",
        "/activate/check",
        "/activate/confirm",
        "/activate/revoke",
        "/activate/sign-out",
        "/auth/cli/{provider}",
        "/profile/{token}",
        "/profile/{token}/compare",
        "/profile/{token}/captures/{index}/archive",
        "/profile/{token}/captures/{index}/{name}",
    }


def test_every_operation_tells_of_the_one_kind_of_error(schema):
    told = [
        name
        for name, operation in operations(schema)
        if operation["responses"]["default"]["content"]["application/json"]["schema"]
        == {"$ref": "#/components/schemas/Error"}
    ]

    assert told == [name for name, _ in operations(schema)]
    error = schema["components"]["schemas"]["Error"]
    assert error["required"] == ["code", "detail"]
    assert error["properties"]["detail"]["type"] == "string"


def test_guards_are_those_of_the_views(schema):
    guards = {name: operation.get("security", []) for name, operation in operations(schema)}

    assert guards["post /admin/start"] == [{"AdminToken": []}]
    assert guards["post /profile/{leaderboard}/{gpu}"] == [{"CliId": []}]
    assert guards["get /user/submissions"] == [{"CliId": []}, {"WebId": []}]
    assert guards["get /gpus/{leaderboard}"] == [{"CliId": []}, {"WebId": []}, {}]
    assert guards["get /leaderboards"] == []
    both = [{"CliId": [], "AdminToken": []}, {"WebId": [], "AdminToken": []}]
    assert guards["post /admin/submission/{leaderboard}/{gpu}/{mode}"] == both
    assert set().union(*(each for guard in guards.values() for each in guard)) <= set(
        schema["components"]["securitySchemes"]
    )


def fits(schema, component, answer) -> bool:
    shape = schema["components"]["schemas"][component]
    return set(shape["required"]) <= set(answer) <= set(shape["properties"])


def test_answers_have_the_fields_that_the_schema_tells(schema, rowsum, alice):
    client = Client(headers=CLI_ID)
    sent = submit(
        SubmissionOrder(
            leaderboard_name="rowsum",
            gpu_name="B200",
            mode=Mode.TEST,
            file_name="submission.py",
            content=orders.SOURCE,
        ),
        actor=alice,
    )
    asked = orders.submit(alice)

    def get(path):
        return client.get(path).json()

    assert fits(schema, "Leaderboard", get("/leaderboards")[0])
    assert fits(schema, "RunnerQueue", get("/runner_queue/B200"))
    assert fits(schema, "ListedSubmission", get("/user/submissions")[0])
    shown = get(f"/user/submissions/{sent.submission_id}")
    assert fits(schema, "Submission", shown)
    assert fits(schema, "SubmissionJob", shown["job"])
    assert fits(schema, "Request", get(f"/api/profile-requests/{asked.pk}/"))
    assert fits(schema, "BrevJob", get(f"/jobs/{asked.pk}"))
    assert fits(schema, "Error", get("/gpus/nothing"))
    assert fits(schema, "Error", get("/user/submissions?limit=x"))
    assert fits(schema, "FieldError", get("/user/submissions?limit=x")["errors"][0])


def test_the_service_gives_its_schema(client):
    answer = client.get("/api/schema/")

    assert answer.headers["Content-Type"] == "application/yaml"
    assert answer.content.decode() == KEPT.read_text()
    as_json = client.get("/openapi.json")
    assert as_json.headers["Content-Type"] == "application/json"
    assert as_json.json() == yaml.safe_load(KEPT.read_text())


def test_the_docs_page_has_nothing_inline_and_nothing_from_elsewhere(client):
    page = client.get("/docs").content.decode()

    loaded = re.findall(r'(?:src|href|data-schema)="([^"]+)"', page)
    assert len(loaded) == 5
    assert all(address.startswith("/") and not address.startswith("//") for address in loaded)
    for address in loaded:
        if address != "/api/schema/":
            assert finders.find(address.removeprefix("/static/")) is not None
    assert re.findall(r"<script[^>]*>([^<]+)", page) == []
    assert "<style" not in page
