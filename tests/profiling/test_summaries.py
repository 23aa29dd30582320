"""Summaries and details of our own, as people and programs get them."""

from __future__ import annotations

import asyncio
import csv
import io
import json

import pytest

from profiling.models import Capture
from tests.profiling.envelopes import (
    a_launch,
)
from tests.profiling.orders import submit
from tests.profiling.pages import HOSTILE

LIST = "/api/profile-requests/"
ALICE = {"X-Popcorn-Cli-Id": "alice-cli-id"}
BOB = {"X-Popcorn-Cli-Id": "bob-cli-id"}
DURATION = "gpu__time_duration.sum"


def capture_of(request) -> Capture:
    return Capture.objects.select_related("request", "artifact").get(request=request)


def strict(answer):
    return json.loads(answer.content, parse_constant=pytest.fail)


def test_the_summary_has_stable_keys_and_says_where_to_look_first(measure, alice, client):
    """FR-42"""
    slow, fast = a_launch("slow", **{DURATION: 9000.0}), a_launch("fast")
    request = measure(alice, [fast, slow])

    told = strict(client.get(f"{LIST}{request.pk}/summary.json", headers=ALICE))

    assert list(told) == ["schema", "request", "about_durations", "captures"]
    report = told["captures"][0]["report"]
    assert (report["look_first"], report["total_duration_ns"]) == (1, 10_000.0)
    launch = report["launches"][1]
    assert (launch["name"], launch["time_share_pct"], launch["bound"]) == ("slow", 90.0, "latency")
    assert "compute 40.0 % and memory 30.0 %" in launch["bound_because"]
    assert told["captures"][0]["opens_with"] == "Nsight Compute 2025.2.1 or newer"


def test_markdown_tells_people_and_agents_the_same(measure, alice, client):
    """FR-23, FR-43"""
    request = measure(alice, [a_launch("slow", **{DURATION: 1_234_567.0})])

    text = client.get(f"{LIST}{request.pk}/summary.md", headers=ALICE).content.decode()
    of_capture = client.get(f"{LIST}{request.pk}/captures/0/summary.md", headers=ALICE)

    assert "What to look at first" in text
    assert "| `slow` |" in text.replace("| 0 ", "")
    assert "1.23 ms" in text
    assert "not for the score" in text
    assert "opens with Nsight Compute 2025.2.1 or newer" in text
    assert of_capture.content.decode().startswith("## profile.0: ")


def test_a_stranger_s_names_are_neither_markup_nor_formulas(measure, alice, client):
    names = ["=HYPERLINK(1)", "a`|b\n# c", HOSTILE]
    request = measure(alice, [a_launch(name) for name in names])

    text = client.get(f"{LIST}{request.pk}/summary.md", headers=ALICE).content.decode()
    lines = client.get(f"{LIST}{request.pk}/summary.csv", headers=ALICE).content.decode()

    assert "\n# c" not in text
    rows = list(csv.DictReader(io.StringIO(lines)))
    assert [row["launch"] for row in rows] == ["0", "1", "2"]
    assert not any(value.startswith(("=", "+", "@")) for row in rows for value in row.values())
    assert rows[0]["duration_ns"] == "1000.0"


@pytest.mark.parametrize("form", ["json", "md", "csv"])
def test_summaries_are_for_the_owner_and_operators_alone(
    measure, alice, bob, client, operator, form
):
    request = measure(alice)
    paths = [f"{LIST}{request.pk}/{place}summary.{form}" for place in ("", "captures/0/")]

    assert [client.get(path, headers=BOB).status_code for path in paths] == [404, 404]
    assert [operator.get(path).status_code for path in paths] == [200, 200]
    assert (
        client.get(f"{LIST}{request.pk}/captures/7/summary.{form}", headers=ALICE).status_code
        == 404
    )


def test_a_request_without_captures_has_an_empty_summary(alice, rowsum, client):
    request = submit(alice)

    told = strict(client.get(f"{LIST}{request.pk}/summary.json", headers=ALICE))

    assert (told["captures"], told["request"]["verdict"]) == ([], "")


def test_a_missing_export_is_made_from_the_report_and_it_is_said(measure, alice, client):
    request = measure(alice, files={"ncu-details.txt": None, "ncu-details.csv": None})

    answer = client.get(f"{LIST}{request.pk}/captures/0/details.txt", headers=ALICE)

    async def read() -> bytes:
        return b"".join([piece async for piece in answer.streaming_content])

    text = asyncio.run(read()).decode()
    assert answer.headers["X-Details-Made-By"] == "service"
    assert "rowsum_kernel (8, 1, 1)x(256, 1, 1)" in text
    notes = [note for note in capture_of(request).notes if note["kind"] == "details_made_here"]
    assert "ncu-details.csv, ncu-details.txt" in notes[0]["message"]
    assert capture_of(request).verdict == "complete"
