from __future__ import annotations

import contextlib
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leaderboards.scoring import NoScore, score_of

# From a nanosecond to an hour.
times = st.lists(st.floats(1, 3.6e12), min_size=1, max_size=300)


def result_of(means):
    told = {f"benchmark.{index}.mean": repr(mean) for index, mean in enumerate(means)}
    return told | {"benchmark-count": str(len(means)), "check": "pass"}


def test_last_takes_the_mean_of_the_only_benchmark_in_seconds():
    assert score_of("last", result_of([18250.5])) == pytest.approx(1.82505e-05)


def test_last_gives_no_score_for_several_benchmarks():
    with pytest.raises(NoScore, match="2 benchmarks"):
        score_of("last", result_of([1.0, 2.0]))


@pytest.mark.parametrize(("ranking_by", "score"), [("mean", 5e-6), ("geom", 4e-6)])
def test_mean_is_arithmetic_and_geom_is_geometric(ranking_by, score):
    assert score_of(ranking_by, result_of([2000, 8000])) == pytest.approx(score)


def test_geom_does_not_vanish_with_many_short_benchmarks():
    assert score_of("geom", result_of([1000.0] * 200)) == pytest.approx(1e-6)


@given(times)
def test_every_rule_stays_between_the_fastest_and_the_slowest(means):
    for rule in ("mean", "geom"):
        score = score_of(rule, result_of(means))
        assert min(means) / 1e9 * (1 - 1e-9) <= score <= max(means) / 1e9 * (1 + 1e-9)


@given(times)
def test_geom_is_never_more_than_mean(means):
    assert score_of("geom", result_of(means)) <= score_of("mean", result_of(means)) * (1 + 1e-9)


@given(times, st.floats(0.5, 2.0))
def test_a_kernel_that_takes_twice_as_long_has_twice_the_score(means, factor):
    for rule in ("mean", "geom"):
        scaled = score_of(rule, result_of([mean * factor for mean in means]))
        assert scaled == pytest.approx(score_of(rule, result_of(means)) * factor)


@pytest.mark.parametrize(
    "told", ["", "nan", "inf", "-inf", "-5", "0", "1e-400", "fast", "1_000 ns", "0x10"]
)
def test_a_time_that_is_none_gives_no_score(told):
    with pytest.raises(NoScore, match="benchmark 0"):
        score_of("geom", {"benchmark-count": "1", "benchmark.0.mean": told})


@pytest.mark.parametrize("count", ["", "0", "-1", "two", "²", "1.0", "9" * 5000, "10001"])
def test_a_count_that_is_none_gives_no_score(count):
    with pytest.raises(NoScore):
        score_of("geom", {"benchmark-count": count, "benchmark.0.mean": "1"})


@given(st.dictionaries(st.text(), st.text()), st.sampled_from(["last", "mean", "geom"]))
def test_whatever_an_evaluator_says_gives_a_positive_score_or_none(result, rule):
    with contextlib.suppress(NoScore):
        assert 0 < score_of(rule, result) < math.inf
