from __future__ import annotations

import pytest
from django.utils import timezone

from leaderboards.audit import NO_REQUEST, RequestContext
from leaderboards.deletion import delete_submission
from leaderboards.exceptions import (
    BenchmarkIndexOutOfRange,
    GpuPaused,
    HourlyLimitReached,
    SubmissionRefused,
    UnknownLeaderboard,
)
from leaderboards.models import AuditEvent, RateLimit, Submission, SubmissionSource
from profiling import actions
from profiling.actions import Refusal
from profiling.exceptions import NotCancellable, NotRerunnable
from profiling.models import ProfileRequest
from runners.exceptions import LostRace
from runners.models import Job
from runners.pauses import pause_gpu
from runners.states import JobStatus
from runners.transitions import move
from tests.profiling.orders import CLI, SOURCE, an_order, submit

ADMIN = ProfileRequest.Origin.ADMIN


def verbs_of(request: ProfileRequest) -> list[str]:
    rows = AuditEvent.objects.filter(subject_kind="profilerequest", subject_id=str(request.pk))
    return list(rows.order_by("id").values_list("verb", flat=True))


# --- Submitting ---


def test_an_accepted_request_has_all_its_rows(alice, rowsum, settings):
    settings.NCU_VERSIONS = {"fake": "2025.2.1"}
    context = RequestContext(request_id="r1", address="192.0.2.7", client_version="1.4.0")

    made = actions.submit_request(
        an_order(ncu_kernel_name="regex:gemm", ncu_launch_count=3),
        actor=alice,
        origin=CLI,
        context=context,
    )

    request = ProfileRequest.objects.get(pk=made.pk)
    assert (request.user, request.origin, request.request_id) == (alice, "cli", "r1")
    assert request.capture_options == {"ncu_kernel_name": "regex:gemm", "ncu_launch_count": 3}
    assert list(request.benchmark_specs) == ["0", "1", "2"]
    assert request.ncu_version_wanted == "2025.2.1"
    assert request.submission.source.content == SOURCE
    assert request.source_sha256 == request.submission.source_id
    assert (request.submission.mode, request.submission.revision) == ("profile", request.revision)
    job = request.job
    assert (job.kind, job.gpu, job.runner, job.owner_key) == ("profile", "B200", "fake", "id-alice")
    event = AuditEvent.objects.get(verb="profile.accepted")
    assert (event.actor, event.subject_id, event.address) == (alice, str(request.pk), "192.0.2.7")
    assert event.data["config_sha256"] == request.config_sha256


def test_names_are_kept_as_the_service_spells_them(alice, rowsum):
    request = submit(alice, gpu_name="b200", leaderboard_name="RowSum")

    assert (request.gpu, request.leaderboard_name) == ("B200", "rowsum")


def test_one_chosen_benchmark_is_the_only_one_asked_for(alice, rowsum):
    request = submit(alice, benchmark_index=2)

    assert request.benchmark_specs == {"2": {"size": 1024, "seed": 4}}


def test_the_fingerprint_tells_options_and_sources_apart_and_nothing_else(alice, bob, rowsum):
    digests = [
        submit(alice).config_sha256,
        submit(bob, leaderboard_name="ROWSUM").config_sha256,
        submit(alice, benchmark_index=0).config_sha256,
        submit(alice, content=SOURCE + b"\n").config_sha256,
    ]

    assert digests[0] == digests[1]
    assert len(set(digests)) == 3


def test_the_same_code_is_stored_once(alice, bob, rowsum):
    first, second = submit(alice), submit(bob)

    assert SubmissionSource.objects.count() == 1
    assert first.submission != second.submission
    assert Job.objects.count() == 2


def test_a_refused_request_is_recorded_with_its_reason_and_nothing_runs(alice, rowsum):
    with pytest.raises(BenchmarkIndexOutOfRange):
        submit(alice, benchmark_index=3, ncu_kernel_name="k")

    request = ProfileRequest.objects.get()
    assert (request.refusal_status, request.refusal_code) == (400, "benchmark_index_out_of_range")
    assert "0 to 2" in request.refusal_reason
    assert request.capture_options == {"benchmark_index": 3, "ncu_kernel_name": "k"}
    assert request.status == "refused"
    assert verbs_of(request) == ["profile.refused"]
    assert not Job.objects.exists()
    assert not Submission.objects.exists()
    assert not SubmissionSource.objects.exists()


@pytest.mark.parametrize(
    "fields",
    [
        {"leaderboard_name": "no\0such\nboard" + "x" * 500},
        {"gpu_name": "\x1b[31mB200" + "y" * 500},
        {"file_name": "a\rb\0" + "z" * 500 + ".py"},
        {"benchmark_index": 10**30},
        {"content": b""},
    ],
    ids=["board", "gpu", "file", "index", "empty"],
)
def test_hostile_names_and_numbers_are_refused_and_kept_in_a_form_that_fits(alice, rowsum, fields):
    with pytest.raises(SubmissionRefused):
        submit(alice, **fields)

    request = ProfileRequest.objects.get()
    kept = request.leaderboard_name + request.gpu + request.file_name + request.refusal_reason
    assert kept.isprintable()
    request.clean_fields(exclude=["system", "benchmark_specs"])


def test_a_paused_gpu_is_told_as_the_fault_of_the_service(alice, rowsum):
    """FR-09: no job is burnt on machines that forbid counters."""
    pause_gpu("B200", kind="counters_not_permitted", reason="ERR_NVGPUCTRPERM", actor_label="d")

    with pytest.raises(GpuPaused, match="fault of this service") as refused:
        submit(alice)

    assert (refused.value.http_status, refused.value.code) == (503, "gpu_paused")
    assert ProfileRequest.objects.get().refusal_status == 503
    assert submit(alice, gpu_name="H100").status == "queued"


def test_an_answer_made_outside_the_service_s_errors_is_recorded_too(alice, rowsum):
    request = actions.record_refusal(
        Refusal(422, "invalid", "ncu_launch_count: A valid integer is required."),
        order=an_order(leaderboard_name="Rowsum", gpu_name="h100", benchmark_index=1),
        actor=alice,
        origin=CLI,
        context=NO_REQUEST,
    )

    assert (request.leaderboard_name, request.gpu) == ("rowsum", "H100")
    assert (request.refusal_status, request.benchmark_index) == (422, 1)


def test_an_unknown_board_is_kept_as_it_was_sent(alice, rowsum):
    with pytest.raises(UnknownLeaderboard):
        submit(alice, leaderboard_name="Colsum")

    assert ProfileRequest.objects.get().leaderboard_name == "Colsum"


# --- Cancelling ---


def test_cancelling_ends_the_job_and_says_who_asked_and_why(alice, rowsum):
    request = submit(alice)

    actions.cancel_request(request, actor=alice, reason="wrong file", context=NO_REQUEST)

    assert ProfileRequest.objects.get().status == "cancelled"
    assert verbs_of(request) == ["profile.accepted", "profile.cancel_asked", "profile.cancelled"]
    asked, done = AuditEvent.objects.filter(verb__startswith="profile.cancel").order_by("id")
    assert (asked.actor, asked.data["reason"]) == (alice, "wrong file")
    assert (done.actor_label, done.data["from_status"]) == (alice.actor_label, "queued")


def test_what_has_ended_cannot_be_cancelled(alice, olga, rowsum):
    request = submit(alice)
    actions.cancel_request(request, actor=alice, reason="", context=NO_REQUEST)

    with pytest.raises(NotCancellable, match="already ended: Cancelled") as refused:
        actions.cancel_request(request, actor=olga, reason="", context=NO_REQUEST)

    assert refused.value.http_status == 409
    assert verbs_of(request).count("profile.cancel_asked") == 1


def test_what_was_refused_cannot_be_cancelled(alice, rowsum):
    with pytest.raises(SubmissionRefused):
        submit(alice, content=b"")

    with pytest.raises(NotCancellable):
        actions.cancel_request(
            ProfileRequest.objects.get(), actor=alice, reason="", context=NO_REQUEST
        )


def test_a_job_that_a_dispatcher_moved_meanwhile_is_cancelled_all_the_same(alice, rowsum):
    request = submit(alice)
    elsewhere = Job.objects.get()
    move(
        elsewhere,
        JobStatus.STARTING,
        actor_label="dispatcher",
        lease_owner="d",
        lease_until=timezone.now(),
    )
    assert request.job.status == JobStatus.QUEUED

    actions.cancel_request(request, actor=alice, reason="", context=NO_REQUEST)

    assert Job.objects.get().status == JobStatus.CANCELLED
    assert verbs_of(request).count("profile.cancel_asked") == 1
    with pytest.raises(LostRace):
        move(elsewhere, JobStatus.RUNNING, actor_label="dispatcher", external_id="run-1")


# --- Running again ---


def again(request, actor) -> ProfileRequest:
    return actions.rerun_request(request, actor=actor, origin=ADMIN, context=NO_REQUEST)


def test_a_rerun_measures_the_same_for_the_same_owner(alice, olga, make_leaderboard):
    board = make_leaderboard(task={"seed": 77})
    first = submit(alice, benchmark_index=1, ncu_kernel_name="k", ncu_kernel_name_base="mangled")
    board.current_revision = None
    board.deadline = timezone.now()
    board.save()

    second = again(first, olga)

    second = ProfileRequest.objects.get(pk=second.pk)
    assert (second.rerun_of, second.user, second.origin) == (first, alice, "admin")
    assert second.job != first.job
    assert second.job.owner_key == "id-alice"
    for name in ("revision", "submission", "seed", "capture_options", "config_sha256", "gpu"):
        assert getattr(second, name) == getattr(first, name), name
    assert AuditEvent.objects.get(verb="profile.rerun_asked").subject_id == str(first.pk)
    accepted = AuditEvent.objects.filter(verb="profile.accepted").latest("id")
    assert (accepted.actor, accepted.data["rerun_of"]) == (olga, str(first.pk))


def test_a_rerun_wants_the_profiler_that_is_pinned_now(alice, olga, rowsum, settings):
    first = submit(alice)
    settings.NCU_VERSIONS = {"fake": "2026.2.0"}

    assert again(first, olga).ncu_version_wanted == "2026.2.0"


def test_a_refused_request_cannot_run_again(alice, olga, rowsum):
    with pytest.raises(SubmissionRefused):
        submit(alice, content=b"")

    with pytest.raises(NotRerunnable, match="refused"):
        again(ProfileRequest.objects.get(), olga)


def test_a_request_whose_source_is_gone_cannot_run_again(alice, olga, rowsum):
    request = submit(alice)
    SubmissionSource.objects.update(content=b"", purged_at=timezone.now())

    with pytest.raises(NotRerunnable, match="source"):
        again(request, olga)

    assert ProfileRequest.objects.count() == 1


def test_a_deleted_request_cannot_run_again(alice, olga, rowsum):
    request = submit(alice)
    request.deleted_at = timezone.now()

    with pytest.raises(NotRerunnable, match="deleted"):
        again(request, olga)


def test_a_gpu_that_is_no_longer_offered_is_named(alice, olga, rowsum, settings):
    request = submit(alice)
    settings.GPU_TYPES = {}

    with pytest.raises(NotRerunnable, match="B200"):
        again(request, olga)


def test_a_paused_gpu_is_not_used_for_a_rerun_either(alice, olga, rowsum):
    request = submit(alice)
    pause_gpu("B200", kind="counters_not_permitted", reason="x", actor_label="d")

    with pytest.raises(GpuPaused):
        again(request, olga)


# --- Deleting the submission of a profile ---


def test_deleting_a_submission_hides_its_profiles_and_cancels_their_jobs(alice, rowsum):
    request = submit(alice)
    again = actions.rerun_request(request, actor=alice, origin=ADMIN)

    delete_submission(request.submission, actor=alice)

    assert not ProfileRequest.objects.visible_to(alice).exists()
    for each in (request, again):
        each.job.refresh_from_db()
        assert each.job.status == JobStatus.CANCELLED
    with pytest.raises(NotRerunnable):
        actions.rerun_request(ProfileRequest.objects.get(pk=request.pk), actor=alice, origin=ADMIN)


def test_a_profile_takes_a_place_of_the_tests_and_is_recorded_when_there_is_none(alice, rowsum):
    RateLimit.objects.create(leaderboard=rowsum, mode_category="test", max_submissions_per_hour=1)
    submit(alice)

    with pytest.raises(HourlyLimitReached):
        submit(alice)

    refused = ProfileRequest.objects.get(refusal_status=429)
    assert refused.refusal_code == "hourly_limit"
    assert Submission.objects.count() == Job.objects.count() == 1
