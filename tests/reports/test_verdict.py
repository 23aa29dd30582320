"""The verdict on counters without a value, with the metrics of a real B200 report (FR-10).

What Nsight Compute 2026.2 wrote on a B200 is known from a report in words alone: many hardware
counters NaN, and six `ctc__` counters that even a good capture lacks.
"""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from profiling.reports.launch import is_counter
from profiling.reports.reader import read_report
from profiling.reports.verdict import KEY_COUNTERS, UNUSABLE_SHARE, Asked, Code, Verdict, judge
from tests.reports.samples import needs_samples, sample
from tests.synthetic_reports import Launch, write_report

pytestmark = needs_samples

DURATION = "gpu__time_duration.sum"
# No version is pinned: what is wrong with the counters must be seen in them alone.
ASKED = Asked(gpu="B200", ncu_version="")
NEWER = "2026.2.0.0 (build 1) (public-release)"
LACKING = [f"ctc__rx_bytes_{number}.sum" for number in range(6)]


@pytest.fixture(scope="module")
def real():
    """A launch with name and metrics of the real one."""
    details = read_report(sample("b200-ncu2025.2-cublaslt-basic.ncu-rep")).details
    assert details is not None
    launch = details.launches[0]
    return Launch(
        name=launch.name, grid=launch.grid, block=launch.block, metrics=dict(launch.metrics)
    )


@pytest.fixture
def judged(tmp_path, real):
    """Facts and judgement of the real launch with some metrics changed."""

    def write_and_judge(changed, **report):
        launch = replace(real, metrics={**real.metrics, **changed})
        path = write_report(tmp_path / "it.ncu-rep", [launch], gpu="NVIDIA B200", **report)
        facts = read_report(path)
        return facts, judge(facts, ASKED, run_failed=False)

    return write_and_judge


def codes(judgement):
    return [reason.code for reason in judgement.reasons]


def counters_of(launch):
    return [name for name in launch.metrics if is_counter(name)]


def test_the_counters_of_the_real_report_are_all_there(judged, real):
    facts, judgement = judged({})

    assert (judgement.verdict, codes(judgement)) == (Verdict.COMPLETE, [])
    assert (facts.counters, facts.counters_unusable) == (len(counters_of(real)), 0)
    assert facts.counters > 300


@pytest.mark.parametrize("value", [math.nan, None, math.inf])
def test_six_counters_that_the_gpu_lacks_are_named_and_degrade_nothing(judged, value):
    facts, judgement = judged(dict.fromkeys(LACKING, value))

    assert (judgement.verdict, codes(judgement)) == (Verdict.COMPLETE, [])
    assert [each.name for each in facts.unavailable] == LACKING


def test_a_profiler_that_knows_the_gpu_badly_is_caught_without_a_pinned_version(judged, real):
    lost = [name for name in counters_of(real) if name != DURATION]
    facts, judgement = judged(dict.fromkeys([*lost, *LACKING], math.nan), ncu_version=NEWER)

    assert (judgement.verdict, codes(judgement)) == (
        Verdict.DEGRADED,
        [Code.COUNTERS_UNAVAILABLE],
    )
    (reason,) = judgement.reasons
    known = [name for name in KEY_COUNTERS if name in lost]
    assert known
    assert all(f"{name} (nan)" in reason.message for name in known)
    assert f"({len(lost)} of {len(lost) + 1})" in reason.message
    assert facts.unavailable_count == len(lost) + len(LACKING)
    assert facts.launches[0].metrics[known[0]].value is None


def test_more_than_a_tenth_of_the_counters_without_a_value_degrade_a_capture(judged, real):
    others = [name for name in counters_of(real) if name not in KEY_COUNTERS]
    bearable = int(len(counters_of(real)) * UNUSABLE_SHARE)

    _, good = judged(dict.fromkeys(others[:bearable], math.nan))
    _, bad = judged(dict.fromkeys(others[: bearable + 1], math.nan))

    assert (good.verdict, bad.verdict) == (Verdict.COMPLETE, Verdict.DEGRADED)


@pytest.mark.parametrize("name", KEY_COUNTERS)
def test_one_key_counter_without_a_value_degrades_a_capture(judged, name):
    _, judgement = judged({name: math.nan})

    assert codes(judgement) == [Code.COUNTERS_UNAVAILABLE]
    assert f"{name} (nan)" in judgement.reasons[0].message


@pytest.mark.parametrize(
    ("name", "nan_metrics"),
    [("a100-ncu2023.3-source-nan", 8), ("h800-ncu2023.3-pytorch-nvtx-nan", 618)],
)
def test_the_nans_of_good_real_captures_do_not_degrade_them(name, nan_metrics):
    """Sampling of one pass, links, and a launch that failed, which is told as that."""
    facts = read_report(sample(f"{name}.ncu-rep"))

    judgement = judge(facts, replace(ASKED, gpu=facts.session.gpu_name), run_failed=False)

    assert sum(launch.nan_count for launch in facts.launches) == nan_metrics
    assert Code.COUNTERS_UNAVAILABLE not in codes(judgement)
    assert (Code.LAUNCH_FAILED in codes(judgement)) == name.startswith("h800")
