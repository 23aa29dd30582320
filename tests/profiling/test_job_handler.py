from __future__ import annotations

import json
import math
import zipfile
from dataclasses import replace

import pytest
from django.utils import timezone

from leaderboards.models import AuditEvent, SubmissionSource
from profiling.job_handler import ProfileJobHandler
from profiling.models import Capture, ProfileRequest
from profiling.verbs import Verb, for_move
from runners.exceptions import RunnerFault
from runners.gpu.contract import Failure, FailureKind, Note, NoteKind, config_sha256
from runners.models import Job, JobEvent
from runners.states import JobStatus
from runners.transitions import move
from tests.profiling.envelopes import (
    a_failure,
    a_launch,
    a_record,
    collect,
    make_archive,
    write_envelope,
)
from tests.profiling.orders import submit


@pytest.fixture
def ask(alice, rowsum):
    def make(**options) -> ProfileRequest:
        return submit(alice, **options)

    return make


@pytest.fixture
def finish(tmp_path):
    """Collect `runs` for a request; archives are paths by part name."""

    def run(request, runs, archives=None, **fields):
        envelope = write_envelope(
            tmp_path / "envelope", request.job, runs, archives or {}, **fields
        )
        results = collect(request.job, envelope)
        request.refresh_from_db()
        return results

    return run


@pytest.fixture
def capture_of(ask, finish, tmp_path):
    """The one capture of a request for benchmark 0, made from an archive."""

    def make(archive=None, record=None, **fields) -> Capture:
        archive = archive or make_archive(tmp_path / "a.zip")
        request = ask(benchmark_index=0)
        record = record or a_record("profile.0.zip")
        finish(request, {"profile.0": record}, {"profile.0.zip": archive}, **fields)
        return Capture.objects.select_related("request").get(request=request)

    return make


def kinds(capture: Capture) -> list[str]:
    return [note["kind"] for note in capture.notes]


# --- The config and the audit rows ---


def test_the_config_of_every_attempt_has_the_recorded_fingerprint(ask):
    request = ask(benchmark_index=1, ncu_launch_count=4)
    request.job.attempt = 3

    config = ProfileJobHandler().build_config(request.job)

    assert (config.job_id, config.attempt) == (str(request.job.pk), 3)
    assert (config.selected, config.arch) == ((1,), "100")
    assert config.capture.ncu_launch_count == 4
    assert config_sha256(config, request.capture_options) == request.config_sha256


def test_a_job_that_can_no_longer_be_run_is_no_fault_of_the_submission(ask, settings):
    request = ask()
    SubmissionSource.objects.update(content=b"", purged_at=timezone.now())
    with pytest.raises(RunnerFault) as fault:
        ProfileJobHandler().build_config(request.job)
    assert (fault.value.kind, fault.value.retryable) == ("source_deleted", False)

    settings.GPU_TYPES = {}
    with pytest.raises(RunnerFault) as fault:
        ProfileJobHandler().build_config(request.job)
    assert fault.value.kind == "gpu_not_offered"


def test_every_move_leaves_its_audit_row(ask):
    job = ask().job
    lease = {"lease_owner": "one", "lease_until": timezone.now()}

    move(job, JobStatus.STARTING, actor_label="dispatcher one", **lease)
    move(job, JobStatus.QUEUED, actor_label="dispatcher one", reason="the provider was away")
    move(job, JobStatus.STARTING, actor_label="dispatcher one", **lease)
    move(job, JobStatus.RUNNING, actor_label="dispatcher one", external_id="run-1")
    move(job, JobStatus.FAILED, actor_label="dispatcher one", failure_kind="provider_lost")

    of_request = AuditEvent.objects.filter(subject_kind="profilerequest")
    rows = of_request.exclude(verb=Verb.ACCEPTED).order_by("id")
    assert [row.verb for row in rows] == [
        Verb.STARTING,
        Verb.REQUEUED,
        Verb.STARTING,
        Verb.STARTED,
        Verb.FAILED,
    ]
    assert rows[1].data["reason"] == "the provider was away"
    assert [row.data["attempt"] for row in rows] == [1, 2, 2, 2, 2]
    assert {(row.actor, row.actor_label) for row in rows} == {(None, "dispatcher one")}
    assert rows[4].data["failure_kind"] == "provider_lost"


@pytest.mark.parametrize("status", JobStatus)
def test_there_is_a_verb_for_every_status(status):
    assert for_move(JobEvent(to_status=status)) in Verb


# --- What is kept of a good capture ---


def test_a_capture_keeps_what_the_report_says_of_itself(capture_of, tmp_path):
    archive = make_archive(tmp_path / "a.zip", [a_launch("one"), a_launch("two")])

    capture = capture_of(archive)

    assert (capture.status, capture.failure_kind, capture.notes) == ("captured", "", [])
    assert capture.spec == "size: 256; seed: 2"
    assert capture.ncu_version.startswith("2025.2.1")
    assert (capture.cuda_version, capture.driver_version) == ("12.9", "575.00")
    assert capture.gpu_name == "NVIDIA B200 (synthetic)"
    assert (capture.launch_count, capture.replay_passes) == (2, 39)
    assert [kernel["name"] for kernel in capture.kernels] == ["one", "two"]
    assert capture.kernels[0]["metrics"]["gpu__time_duration.sum"]["value"] == 1000.0
    assert capture.passed is True
    assert capture.run["result"]["benchmark.0.spec"] == "size: 256"
    assert (capture.finished_at - capture.started_at).total_seconds() == 7
    assert capture.artifact.name == "profile.0.zip"
    request = capture.request
    assert (request.verdict, request.result_origin) == ("complete", "")
    assert request.system["hostname"] == "gpu-7"


def test_collecting_twice_changes_nothing(ask, finish, tmp_path):
    request = ask(benchmark_index=0)
    archives = {"profile.0.zip": make_archive(tmp_path / "a.zip")}

    finish(request, {"profile.0": a_record("profile.0.zip")}, archives)
    finish(request, {"profile.0": a_record("profile.0.zip")}, archives)

    assert Capture.objects.count() == 1
    assert request.verdict == "complete"


def test_who_really_ran_it_is_kept(capture_of):
    assert capture_of(origin="synthetic").request.result_origin == "synthetic"


# --- Verdicts ---


def test_a_profile_of_which_one_benchmark_failed_is_partial(ask, finish, tmp_path):
    request = ask()
    runs = {
        "profile.0": a_record("profile.0.zip"),
        "profile.1": a_failure(FailureKind.TIME_LIMIT),
    }

    results = finish(request, runs, {"profile.0.zip": make_archive(tmp_path / "a.zip")})

    captures = list(Capture.objects.all())
    assert [capture.status for capture in captures] == ["captured", "failed", "failed"]
    assert [capture.failure_kind for capture in captures[1:]] == ["time_limit", "gpu_side_crashed"]
    assert [capture.failure_fault for capture in captures[1:]] == ["submission", "service"]
    assert request.verdict == "partial"
    assert results.failure_kind == ""


@pytest.mark.parametrize("kind", ["launch_limit_reached", "time_limit_reached", "export_failed"])
def test_a_capture_that_lacks_something_is_never_complete(capture_of, kind):
    """FR-01: the window closed early, and every place says so."""
    note = Note(kind=NoteKind(kind), message="Limit reached: 10 captured, more may follow.")

    capture = capture_of(record=a_record("profile.0.zip", notes=(note,)))

    assert capture.status == "captured"
    assert capture.notes == [{"kind": kind, "message": note.message}]
    assert capture.request.verdict == "partial"


def test_a_wrong_result_is_a_good_capture(capture_of):
    wrong = a_record("profile.0.zip")
    wrong = replace(wrong, run=replace(wrong.run, passed=False, result={"check": "fail"}))

    capture = capture_of(record=wrong)

    assert (capture.status, capture.passed) == ("captured", False)
    assert capture.request.verdict == "complete"


def test_a_failed_compilation_is_the_submission_s_in_every_benchmark(ask, finish):
    request = ask()
    compiled = Failure(kind=FailureKind.COMPILE_FAILED, message="error: expected ';'")

    results = finish(request, {}, failure=compiled)

    assert results.failure_kind == ""
    assert set(Capture.objects.values_list("failure_kind", "failure_fault")) == {
        ("compile_failed", "submission")
    }
    assert request.verdict == "failed"


def test_when_the_service_failed_everything_so_did_the_job(ask, finish):
    """FR-09: counters that the machine forbids are never the submission's failure."""
    request = ask(benchmark_index=0)

    results = finish(request, {"profile.0": a_failure(FailureKind.COUNTERS_NOT_PERMITTED)})

    assert (results.failure_kind, results.failure_message) == (
        "counters_not_permitted",
        "Why it failed.",
    )
    assert Capture.objects.get().failure_fault == "service"
    assert request.verdict == "failed"


# --- Reports that are no success ---


def test_a_report_without_a_launch_is_no_success(capture_of, tmp_path):
    """FR-04: exit code 0, a file of megabytes, and nothing in it."""
    archive = make_archive(tmp_path / "a.zip", [], pad_bytes=1_000_000)

    capture = capture_of(archive)

    assert (capture.status, capture.failure_kind) == ("failed", "no_kernel_captured")
    assert capture.artifact is not None
    assert capture.request.verdict == "failed"


def test_a_nameless_launch_is_no_success(capture_of, tmp_path):
    capture = capture_of(make_archive(tmp_path / "a.zip", [a_launch(), a_launch(None)]))

    assert (capture.status, capture.failure_kind) == ("failed", "report_unreadable")


@pytest.mark.parametrize("content", [b"", b"NVR\0", b"NVR\0\xff\xff\xff\x7f", b"<html>"])
def test_cut_framing_is_no_success(capture_of, tmp_path, content):
    archive = make_archive(tmp_path / "a.zip", files={"profile.ncu-rep": content})

    capture = capture_of(archive)

    assert capture.status == "failed"
    assert capture.failure_kind in {"report_unreadable", "no_kernel_captured"}


@pytest.mark.parametrize(
    "files",
    [
        {"profile.ncu-rep": None},
        {"../../etc/passwd": b"x"},
        {"profile.ncu-rep": b"\0" * (65 * 2**20)},
        {f"file-{n}": b"x" for n in range(11)},
    ],
    ids=["no report", "foreign name", "bomb", "too many"],
)
def test_an_archive_that_is_none_of_ours_is_not_opened(capture_of, tmp_path, files):
    capture = capture_of(make_archive(tmp_path / "a.zip", files=files))

    assert (capture.status, capture.failure_kind) == ("failed", "report_unreadable")
    assert capture.failure_fault == "service"


def test_an_archive_of_another_form_is_not_opened(capture_of, tmp_path):
    for content in (b"", b"PK", b"no zip at all " * 10):
        (tmp_path / "a.zip").write_bytes(content)
        assert capture_of(tmp_path / "a.zip").failure_kind == "report_unreadable"
    with zipfile.ZipFile(tmp_path / "lzma.zip", "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr("profile.ncu-rep", b"x")
    assert "compressed" in capture_of(tmp_path / "lzma.zip").failure_message


def test_a_damaged_archive_is_a_failed_capture(capture_of, tmp_path):
    content = bytearray(make_archive(tmp_path / "a.zip").read_bytes())
    content[60:90] = b"\xff" * 30
    (tmp_path / "a.zip").write_bytes(content)

    assert capture_of(tmp_path / "a.zip").failure_kind == "report_unreadable"


def test_a_failed_run_keeps_the_archive_that_came_with_it(capture_of):
    crashed = Failure(kind=FailureKind.EVALUATOR_CRASHED, message="It crashed.")

    capture = capture_of(record=a_record("profile.0.zip", failure=crashed))

    assert (capture.status, capture.failure_kind) == ("failed", "evaluator_crashed")
    assert (capture.launch_count, capture.artifact.name) == (1, "profile.0.zip")


# --- Not what was asked for ---


def test_counters_without_values_are_listed_and_never_break_the_row(capture_of, tmp_path, settings):
    """FR-10, FR-19: NaN and infinity are stored as null with a reason, the version is compared."""
    settings.NCU_VERSIONS = {"fake": "2025.2.1"}
    archive = make_archive(
        tmp_path / "a.zip",
        [
            a_launch(
                **{
                    "sm__warps_active.avg.pct_of_peak_sustained_active": math.nan,
                    "lts__t_sector_hit_rate.pct": -math.inf,
                    "ctc__rx_bytes.sum": None,
                }
            )
        ],
        ncu_version="2026.2.0.0 (build 1) (public-release)",
    )

    capture = capture_of(archive)

    assert capture.status == "captured"
    assert kinds(capture) == ["profiler_version_differs", "counters_unavailable"]
    assert "2026.2.0" in capture.notes[0]["message"]
    assert "2025.2.1" in capture.notes[0]["message"]
    stored = [capture.kernels, capture.unavailable_counters, capture.notes]
    json.dumps(stored, allow_nan=False)
    occupancy = capture.kernels[0]["metrics"]["sm__warps_active.avg.pct_of_peak_sustained_active"]
    assert (occupancy["state"], occupancy["value"]) == ("nan", None)
    assert {"name": "ctc__rx_bytes.sum", "state": "no_value", "launches": 1} in (
        capture.unavailable_counters
    )


def test_a_few_missing_counters_beside_the_key_ones_do_not_degrade(capture_of, tmp_path):
    """FR-10, second report: everything finite but some that the memory unit lacks."""
    archive = make_archive(tmp_path / "a.zip", [a_launch(ctc__rx_bytes_sum=None)])

    capture = capture_of(archive)

    assert capture.notes == []
    assert len(capture.unavailable_counters) == 1
    assert capture.request.verdict == "complete"


def test_a_report_of_another_profiler_or_gpu_is_flagged(capture_of, tmp_path):
    """FR-23: what was asked for and what the report says stand side by side."""
    archive = make_archive(
        tmp_path / "a.zip", gpu="NVIDIA B2000", ncu_version="2024.1.0.0 (build 2) (public-release)"
    )

    capture = capture_of(archive)

    assert kinds(capture) == ["profiler_version_differs", "gpu_differs"]
    assert "NVIDIA B2000" in capture.notes[1]["message"]
    assert [reason["code"] for reason in capture.verdict_reasons] == kinds(capture)
    assert (capture.verdict, capture.request.verdict) == ("degraded", "degraded")


def test_times_and_texts_of_the_other_side_are_not_believed(capture_of):
    record = a_record("profile.0.zip", start="yesterday", end="2026-11-30T12:00:00")

    capture = capture_of(record=record, origin="x" * 500)

    assert abs((capture.finished_at - timezone.now()).total_seconds()) < 600
    assert capture.started_at <= capture.finished_at
    assert len(capture.request.result_origin) == 100


def test_the_row_of_the_job_is_left_to_the_dispatcher(capture_of):
    capture_of()

    assert Job.objects.get().status == JobStatus.QUEUED
