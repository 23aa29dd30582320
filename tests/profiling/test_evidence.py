"""What is kept of a report and what it is worth: through rows and HTTP."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from datetime import timedelta

import pytest
from django.utils import timezone

from leaderboards.deletion import delete_submission, purge_deleted
from profiling.evidence import details_of
from profiling.models import Capture, CaptureDetails
from runners.gpu.contract import FailureKind
from tests.profiling.envelopes import (
    a_failure,
    a_launch,
    a_record,
)
from tests.reports.samples import needs_samples, sample
from tests.synthetic_reports import DEVICE, Launch, dimensions

LIST = "/api/profile-requests/"
ALICE = {"X-Popcorn-Cli-Id": "alice-cli-id"}
OCCUPANCY = "sm__warps_active.avg.pct_of_peak_sustained_active"
DURATION = "gpu__time_duration.sum"


def capture_of(request) -> Capture:
    return Capture.objects.select_related("request", "artifact").get(request=request)


def strict(answer):
    return json.loads(answer.content, parse_constant=pytest.fail)


# --- What is kept ---


def test_all_metrics_are_kept_beside_the_capture_and_lists_do_not_load_them(
    measure, alice, django_assert_num_queries
):
    request = measure(alice, [a_launch("one", extra__metric=7.5), a_launch("two")])

    details = details_of(capture_of(request))

    assert [launch.name for launch in details.launches] == ["one", "two"]
    assert details.launches[0].metrics["extra__metric"] == 7.5
    assert (details.launches[0].grid, details.unit(DURATION)) == ((8, 1, 1), "ns")
    with django_assert_num_queries(1):
        assert "details" not in Capture.objects.get(request=request).__dict__["_state"].fields_cache


def test_nan_and_both_infinities_are_strict_json_everywhere(measure, alice, client, operator):
    """FR-19: null with a reason, and the other captures untouched."""
    odd = {OCCUPANCY: math.nan, "lts__t_sector_hit_rate.pct": math.inf, "a__b": -math.inf}
    request = measure(alice, [a_launch(**odd)])
    measure(alice)

    paths = [LIST, f"{LIST}{request.pk}/", f"{LIST}{request.pk}/summary.json"]
    answers = [strict(client.get(path, headers=ALICE)) for path in paths]

    assert len(answers[0]["results"]) == 2
    launch = answers[2]["captures"][0]["report"]["launches"][0]
    assert launch["numbers"]["occupancy_pct"] is None
    assert launch["unavailable"]["occupancy_pct"] == "nan"
    assert launch["unavailable"]["l2_hit_pct"] == "inf"
    details = details_of(capture_of(request))
    assert (details.launches[0].metrics["a__b"], details.launches[0].states["a__b"]) == (
        None,
        "inf",
    )
    page = operator.get(f"/operators/profiling/capture/{capture_of(request).pk}/change/")
    assert page.status_code == 200


def test_what_was_kept_goes_with_the_deleted_submission(measure, alice):
    request = measure(alice)
    delete_submission(request.submission, actor=alice)

    purge_deleted(grace=timedelta(0), now=timezone.now() + timedelta(days=1))

    assert CaptureDetails.objects.count() == 0
    assert Capture.objects.count() == 1


# --- The verdict ---


def codes(capture) -> list[str]:
    return [reason["code"] for reason in capture.verdict_reasons]


def test_the_profiler_of_2026_on_a_b200_is_caught_by_itself(measure, alice, settings):
    """FR-10: many NaN counters and another profiler than the pinned one."""
    settings.NCU_VERSIONS = {"fake": "2025.2.1"}
    nan = dict.fromkeys((OCCUPANCY, "lts__t_sector_hit_rate.pct"), math.nan)
    ctc = {f"ctc__rx_bytes_{n}.sum": None for n in range(6)}
    request = measure(
        alice, [a_launch(**nan, **ctc)], ncu_version="2026.2.0.0 (build 1) (public-release)"
    )

    capture = capture_of(request)

    assert (capture.status, capture.verdict, request.verdict) == ("captured", *["degraded"] * 2)
    assert set(codes(capture)) == {"profiler_version_differs", "counters_unavailable"}
    said = " ".join(reason["message"] for reason in capture.verdict_reasons)
    assert OCCUPANCY in said
    assert "2026.2.0" in said
    assert "33%" in said  # two of the six hardware counters; ctc__ is not counted


def test_many_nan_counters_degrade_although_the_key_ones_are_there(measure, alice):
    """FR-10"""
    many = {f"l1tex__some_{n}.sum": math.nan for n in range(4)}

    capture = capture_of(measure(alice, [a_launch(**many)]))

    assert (capture.verdict, codes(capture)) == ("degraded", ["counters_unavailable"])


def test_counters_that_a_gpu_lacks_do_not_degrade(measure, alice):
    """FR-10, second report."""
    lacking = {f"ctc__rx_bytes_{n}.sum": math.nan for n in range(6)}

    capture = capture_of(measure(alice, [a_launch(**lacking)]))

    assert (capture.verdict, capture.verdict_reasons) == ("complete", [])


ASKED = "--set full --nvtx --cache-control all --clock-control none --replay-mode kernel"


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        (ASKED, []),
        (ASKED.replace("--cache-control all", "--cache-control none"), ["cache control is none"]),
        (ASKED.replace("--clock-control none ", ""), ["clock control is base"]),
        (f"{ASKED} --kernel-name other", ["kernel name is other"]),
    ],
)
def test_options_other_than_asked_degrade_and_are_named(measure, alice, flags, expected):
    """FR-43: what the report knows of the capture, whatever the runner believes."""
    line = f"/home/user01/bin/ncu {flags} /home/user01/secret --clock-control base"

    capture = capture_of(measure(alice, command_line=line))

    assert capture.verdict == ("degraded" if expected else "complete")
    said = " ".join(reason["message"] for reason in capture.verdict_reasons)
    assert all(words in said for words in expected)
    assert capture.session["settings"]["told_by"] == "command_line"
    assert "user01" not in json.dumps(capture.session)


def test_a_filter_with_blanks_is_the_same_in_a_command_line_without_quotes(measure, alice):
    pattern = 'regex:void my_kernel<"a", 1>'
    line = f"ncu {ASKED} --kernel-name {pattern} -- python3 eval.py"

    capture = capture_of(measure(alice, order={"ncu_kernel_name": pattern}, command_line=line))

    assert (capture.verdict, capture.verdict_reasons) == ("complete", [])


def test_a_launch_that_failed_makes_it_partial_and_is_named(measure, alice):
    names = (DURATION, OCCUPANCY, "lts__t_sector_hit_rate.pct", "smsp__inst_executed.sum")
    failed = a_launch("gone", **dict.fromkeys(names, math.nan))
    metrics = {k: v for k, v in failed.metrics.items() if "_dim_" not in k and "hput" not in k}
    request = measure(alice, [a_launch("good"), replace(failed, metrics=metrics)])

    capture = capture_of(request)
    assert (capture.verdict, codes(capture)) == ("partial", ["launch_failed"])
    assert "gone (launch 1)" in capture.verdict_reasons[0]["message"]


def test_a_report_without_durations_is_partial(measure, alice):
    bare = Launch(name="k", metrics={**DEVICE, **dimensions((1, 1, 1), (1, 1, 1))})

    capture = capture_of(measure(alice, [bare]))

    assert (capture.verdict, codes(capture)) == ("partial", ["counters_missing"])


def test_empty_unreadable_and_missing_are_told_apart(measure, alice):
    empty = measure(alice, [])
    cut = measure(alice, files={"profile.ncu-rep": b"NVR\0"})
    nothing = measure(alice, record=a_failure(FailureKind.TIME_LIMIT))

    verdicts = [capture_of(request).verdict for request in (empty, cut, nothing)]

    assert verdicts == ["empty", "unreadable", "missing"]
    assert {request.verdict for request in (empty, cut, nothing)} == {"failed"}


def test_a_program_that_failed_under_the_profiler_leaves_a_partial_report(measure, alice):
    record = a_record("profile.0.zip", failure=a_failure(FailureKind.EVALUATOR_CRASHED).failure)

    capture = capture_of(measure(alice, record=record))

    assert (capture.status, capture.verdict, codes(capture)) == (
        "failed",
        "partial",
        ["run_failed"],
    )


def test_requests_are_filtered_by_verdict(measure, alice, client):
    measure(alice)
    degraded = measure(alice, gpu="NVIDIA H100")

    found = client.get(f"{LIST}?verdict=degraded", headers=ALICE)
    refused = client.get(f"{LIST}?verdict=great", headers=ALICE)

    assert [row["id"] for row in found.json()["results"]] == [str(degraded.pk)]
    assert (refused.status_code, "degraded" in refused.json()["detail"]) == (422, True)


# --- Real reports, the whole way ---


@needs_samples
def test_a_real_report_is_judged_by_what_it_says_of_itself(measure, alice, client):
    report = sample("b200-ncu2025.2-cublaslt-basic.ncu-rep").read_bytes()
    ours = sample("text/b200-details.csv").read_bytes()
    files = {"profile.ncu-rep": report, "ncu-details.csv": ours.replace(b'"49.95"', b'"1.00"')}

    request = measure(alice, files=files)

    capture = capture_of(request)
    assert (capture.gpu_name, capture.verdict, request.verdict) == (
        *("NVIDIA B200", "degraded", "degraded"),
    )
    # Not captured as we ask for it: the basic set, and clocks held at their base.
    assert codes(capture) == ["sections_missing", "counters_missing", "options_differ"]
    noted = {note["kind"]: note["message"] for note in capture.notes}
    assert "Duration of launch 0 is 1.00 us there, 49.95 us here" in noted["details_differ"]
    body = client.get(f"{LIST}{request.pk}/", headers=ALICE).content.decode()
    summary = client.get(f"{LIST}{request.pk}/summary.json", headers=ALICE).content.decode()
    assert not any(mark in body + summary for mark in ("user0001", "host-1", "192.0.2", "fe80::"))
    assert strict(client.get(f"{LIST}{request.pk}/", headers=ALICE))["captures"][0]["verdict"]


@needs_samples
def test_launches_without_a_single_counter_are_no_complete_capture(measure, alice):
    content = sample("gh200-ncu2025.1-triton-nosections.ncu-rep").read_bytes()

    capture = capture_of(measure(alice, files={"profile.ncu-rep": content}))

    assert "counters_missing" in codes(capture)
    assert capture.verdict != "complete"


@needs_samples
def test_a_failed_launch_of_a_real_report_is_named(measure, alice):
    content = sample("a10g-ncu2023.1-failed-kernel-nan.ncu-rep").read_bytes()

    capture = capture_of(measure(alice, files={"profile.ncu-rep": content}))

    said = {reason["code"]: reason["message"] for reason in capture.verdict_reasons}
    assert "1 of 4 launches failed" in said["launch_failed"]
    # Its NaNs are its own, and no sign of a profiler that does not know the GPU.
    assert "counters_unavailable" not in said
