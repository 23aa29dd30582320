"""What is kept of a report, what it is worth, and where it is read: through rows and HTTP."""

from __future__ import annotations

import asyncio
import csv
import io
import json
import math
from dataclasses import replace
from datetime import timedelta
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.test import Client
from django.utils import timezone

from leaderboards.deletion import delete_submission, purge_deleted
from leaderboards.models import AuditEvent
from profiling.evidence import details_of
from profiling.models import Capture, CaptureDetails, ProfileRequest
from runners.gpu.contract import FailureKind
from tests.profiling.envelopes import (
    a_failure,
    a_launch,
    a_record,
    collect,
    make_archive,
    write_envelope,
)
from tests.profiling.orders import submit
from tests.profiling.pages import HOSTILE
from tests.synthetic_reports import DEVICE, Launch, dimensions

LIST = "/api/profile-requests/"
ALICE = {"X-Popcorn-Cli-Id": "alice-cli-id"}
BOB = {"X-Popcorn-Cli-Id": "bob-cli-id"}
OCCUPANCY = "sm__warps_active.avg.pct_of_peak_sustained_active"
DURATION = "gpu__time_duration.sum"


@pytest.fixture
def operator(olga):
    client = Client()
    client.force_login(olga)
    return client


@pytest.fixture
def measure(rowsum, tmp_path):
    """A finished request for one benchmark, whose archive holds these launches."""

    def make(owner, launches=None, *, index=0, record=None, files=None, order=None, **report):
        request = submit(owner, benchmark_index=index, **(order or {}))
        archive = make_archive(tmp_path / "a.zip", launches, files=files, **report)
        name = f"profile.{index}.zip"
        runs = {f"profile.{index}": record or a_record(name)}
        collect(request.job, write_envelope(tmp_path / "e", request.job, runs, {name: archive}))
        request.refresh_from_db()
        return request

    return make


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


# --- Summaries ---


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


# --- Details of our own ---


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


# --- Comparison ---


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


# --- Reading again ---


def test_reports_of_an_earlier_reader_are_read_again(measure, alice):
    old, new = measure(alice), measure(alice)
    CaptureDetails.objects.filter(capture__request=old).update(reader="0", content=b"", schema=0)
    Capture.objects.filter(request=old).update(verdict="", kernels=[], verdict_reasons=[])
    ProfileRequest.objects.filter(pk=old.pk).update(verdict="")
    out = StringIO()

    call_command("reread_reports", stdout=out)

    assert out.getvalue() == f"{old.pk} profile.0: complete, was none\n"
    old.refresh_from_db()
    capture = capture_of(old)
    assert (old.verdict, capture.verdict, len(capture.kernels)) == ("complete", "complete", 1)
    assert details_of(capture).launches[0].name == "rowsum_kernel"
    event = AuditEvent.objects.get(verb="profile.reread")
    assert (event.subject_id, event.data["after"]) == (str(old.pk), "complete")
    assert details_of(capture_of(new)) is not None


def test_a_failure_of_the_reader_is_decided_anew_and_others_stay(measure, alice):
    unread = measure(alice)
    Capture.objects.filter(request=unread).update(
        status="failed", failure_kind="report_unreadable", verdict="unreadable"
    )
    crashed = measure(
        alice,
        record=a_record("profile.0.zip", failure=a_failure(FailureKind.EVALUATOR_CRASHED).failure),
    )

    call_command("reread_reports", str(unread.pk), str(crashed.pk), stdout=StringIO())

    assert (capture_of(unread).status, capture_of(unread).verdict) == ("captured", "complete")
    again = capture_of(crashed)
    assert (again.status, again.failure_kind, again.verdict) == (
        "failed",
        "evaluator_crashed",
        "partial",
    )


def test_nothing_is_read_on_a_dry_run_and_a_limit_holds(measure, alice):
    requests = [measure(alice) for _ in range(3)]
    ids = [str(request.pk) for request in requests]
    dry, limited = StringIO(), StringIO()

    call_command("reread_reports", *ids, dry_run=True, stdout=dry)
    call_command("reread_reports", *ids, limit=2, stdout=limited)

    assert dry.getvalue() == "3 captures would be read again\n"
    assert len(limited.getvalue().splitlines()) == 2
    assert AuditEvent.objects.filter(verb="profile.reread").count() == 2


def test_a_lost_archive_and_a_wrong_id_are_told(measure, alice):
    request = measure(alice)
    capture = capture_of(request)
    capture.artifact.file.storage.delete(capture.artifact.file.name)
    errors = StringIO()

    with pytest.raises(CommandError, match="1 of 1"):
        call_command("reread_reports", str(request.pk), stderr=errors)
    with pytest.raises(CommandError, match="not the id"):
        call_command("reread_reports", "7")

    assert "no longer in the storage" in errors.getvalue()
    assert capture_of(request).verdict == "complete"
