"""Two captures side by side, over HTTP."""

from __future__ import annotations

import json
import math

import pytest

from tests.profiling.envelopes import (
    a_launch,
)

ALICE = {"X-Popcorn-Cli-Id": "alice-cli-id"}
BOB = {"X-Popcorn-Cli-Id": "bob-cli-id"}
DURATION = "gpu__time_duration.sum"


def strict(answer):
    return json.loads(answer.content, parse_constant=pytest.fail)


def compare(client, base, other, headers=ALICE, **more):
    query = {"base": str(base.pk), "other": str(other.pk), **more}
    return client.get("/api/captures/compare", query, headers=headers)


def test_captures_are_compared_launch_by_launch(measure, alice, client):
    base = measure(alice, [a_launch("k"), a_launch("k"), a_launch("only_base")])
    other = measure(alice, [a_launch("k", **{DURATION: 500.0}), a_launch("new")])

    told = strict(compare(client, base, other))["comparisons"][0]

    assert told["comparable"] is True
    assert told["differences"] == []
    launches = {(each["name"], each["occurrence"]): each for each in told["launches"]}
    metrics = {each["metric"]: each for each in launches["k", 0]["metrics"]}
    assert (metrics[DURATION]["change"], metrics[DURATION]["change_pct"]) == (-500.0, -50.0)
    assert (launches["k", 1]["base_index"], launches["k", 1]["other_index"]) == (1, None)
    assert launches["new", 0]["base_index"] is None
    assert launches["only_base", 0]["metrics"] == []


def test_what_makes_captures_incomparable_is_named(measure, alice, client):
    """FR-23, FR-43"""
    base = measure(alice)
    other = measure(alice, index=0, gpu="NVIDIA H100", ncu_version="2024.1.0.0 (build 1)")

    told = strict(compare(client, base, other, metrics="all"))["comparisons"][0]

    assert told["comparable"] is False
    found = {each["what"]: each for each in told["differences"]}
    assert found["GPU"]["other"] == "NVIDIA H100"
    assert {"GPU", "Nsight Compute", "verdict"} <= set(found)


def test_a_value_that_one_side_lacks_has_no_change(measure, alice, client):
    base, other = measure(alice), measure(alice, [a_launch(**{DURATION: math.nan})])

    told = strict(compare(client, base, other))["comparisons"][0]

    metrics = {each["metric"]: each for each in told["launches"][0]["metrics"]}
    assert (metrics[DURATION]["other_state"], metrics[DURATION]["change"]) == ("nan", None)


def test_benchmarks_that_only_one_side_has_are_listed(measure, alice, client):
    base, other = measure(alice, index=0), measure(alice, index=1)

    told = strict(compare(client, base, other))

    assert told == {"comparisons": [], "only_base": ["profile.0"], "only_other": ["profile.1"]}


def test_nobody_compares_with_what_they_may_not_read(measure, alice, bob, client, operator):
    mine, theirs = measure(alice), measure(bob)

    assert compare(client, mine, theirs).status_code == 404
    assert compare(client, theirs, theirs, headers=BOB).status_code == 200
    assert compare(operator, mine, theirs, headers={}).status_code == 200


@pytest.mark.parametrize("query", [{}, {"base": "1", "other": "2"}, {"benchmark": "x"}])
def test_what_is_no_request_is_refused_by_name(client, alice, query):
    answer = client.get("/api/captures/compare", query, headers=ALICE)

    assert answer.status_code == 422
    assert "wanted" in answer.json()["detail"]
