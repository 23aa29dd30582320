"""Requests, captures, jobs and pauses in the admin site: what is shown, what can be done."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import Permission
from django.urls import reverse

from leaderboards.exceptions import GpuPaused
from leaderboards.models import AuditEvent
from profiling.models import Capture, ProfileRequest
from runners.models import Artifact, GpuPause, Job
from runners.pauses import pause_gpu, paused_gpus
from tests.conftest import make_person
from tests.profiling.orders import refuse, submit
from tests.profiling.pages import page_of, text_of


def act(site, model, action: str, *rows) -> list[str]:
    """Choose an action for rows of a list, and read the messages."""
    form = {"action": action, "_selected_action": [row.pk for row in rows]}
    answer = site.post(page_of(model), form, follow=True)
    assert answer.status_code == 200
    return [str(message) for message in answer.context["messages"]]


# --- One request ---


def test_a_request_shows_what_was_asked_beside_what_was_measured(site, captured):
    """FR-23: options, profiler, GPU and driver, as asked for and as the report says."""
    page = text_of(site, page_of(ProfileRequest, of=captured.pk))

    for text in (
        "NVIDIA B200 (synthetic)",
        "2025.2.1.0 (build 0) (synthetic)",
        "575.00",
        "size: 256; seed: 2",
        "&lt;script&gt;alert",
        captured.config_sha256,
        captured.source_sha256,
        str(captured.job_id),
        "profile.accepted",
        "launch_limit_reached",
        "compile_failed (fault of the submission)",
        "10 more launches are in the report",
    ):
        assert text in page, text
    for label in ("Duration", "Achieved occupancy", "L2 hit rate", "Executed instructions"):
        assert label in page
    archive = Artifact.objects.get()
    assert archive.sha256 in page
    assert reverse("capture-archive", args=[captured.pk, 0]) in page
    assert reverse("capture-file", args=[captured.pk, 0, "details.csv"]) in page


def test_a_compilers_words_are_shown_line_by_line(site, captured):
    failed = captured.captures.get(failure_kind="compile_failed")
    failed.compilation = {"success": False, "stderr": "a.cu(1): error: no ;\n  int n\n      ^\n"}
    failed.save()

    page = text_of(site, page_of(Capture, of=failed.pk))

    assert "success: false\nstderr:\n    a.cu(1): error: no ;\n      int n\n" in page


def test_an_operator_can_fetch_the_files_of_others(site, client, bob, captured):
    archive = Artifact.objects.get()
    page = reverse("capture-archive", args=[captured.pk, 0])

    answer = site.head(page)

    assert answer.status_code == 200
    assert answer["Content-Length"] == str(archive.size)
    client.force_login(bob)
    assert client.head(page).status_code in (400, 401, 404)


@pytest.mark.parametrize("model", [ProfileRequest, Capture])
def test_what_no_gpu_measured_says_so_in_list_and_page(site, captured, model):
    row = model.objects.first()

    for page in (page_of(model), page_of(model, of=row.pk)):
        assert "synthetic, not measured" in site.get(page).content.decode()


def test_a_refused_request_shows_its_reason(site, alice, rowsum):
    request = refuse(alice)

    page = text_of(site, page_of(ProfileRequest, of=request.pk))

    assert "empty_file" in page
    assert "the submitted file is empty" in page


def test_a_capture_shows_the_run_and_every_kernel_that_is_kept(site, captured):
    capture = Capture.objects.get(benchmark_index=0)

    page = text_of(site, page_of(Capture, of=capture.pk))

    assert page.count("&lt;script&gt;alert(&#x27;x&#x27;)&lt;/script&gt;") >= 30
    assert "python3 eval.py profile cases.txt" in page
    assert "GPU Speed Of Light" in page


def test_a_job_shows_its_events_and_files(site, captured):
    page = text_of(site, page_of(Job, of=captured.job_id))

    assert Artifact.objects.get().sha256 in page
    assert "alice (id-alice)" in page


@pytest.mark.parametrize("by", ["pk", "job_id", "source_sha256", "name", "public id"])
def test_a_request_is_found_by_what_names_it(site, alice, bob, rowsum, by):
    wanted, other = submit(alice), submit(bob, content=b"other\n")
    terms = {"name": "alice", "public id": "id-alice"}

    page = site.get(page_of(ProfileRequest), {"q": terms.get(by) or getattr(wanted, by)})

    found = list(page.context["cl"].result_list)
    assert found == [wanted]
    assert other not in found


# --- What operators can do ---


def test_cancelling_selected_requests_tells_each_refusal(site, olga, alice, rowsum):
    waiting, refused = submit(alice), refuse(alice)

    told = act(site, ProfileRequest, "cancel_selected", waiting, refused)

    assert sorted(told) == sorted(
        [f"{waiting.pk}: cancelled", f"{refused.pk}: this request was refused and has never run"]
    )
    assert Job.objects.get().status == "cancelled"
    asked = AuditEvent.objects.get(verb="profile.cancel_asked")
    assert (asked.actor, asked.address) == (olga, "127.0.0.1")


def test_measuring_selected_requests_again_links_the_new_ones(site, olga, alice, rowsum):
    first = submit(alice)

    told = act(site, ProfileRequest, "rerun_selected", first)

    again = ProfileRequest.objects.get(rerun_of=first)
    assert told == [f"{first.pk}: runs again as {again.pk}"]
    assert (again.user, again.origin) == (alice, "admin")
    assert AuditEvent.objects.get(verb="profile.rerun_asked").actor == olga
    assert str(again.pk) in text_of(site, page_of(ProfileRequest, of=first.pk))
    assert str(first.pk) in text_of(site, page_of(ProfileRequest, of=again.pk))


@pytest.mark.parametrize("action", ["cancel_selected", "rerun_selected"])
def test_the_page_of_one_request_offers_the_same(site, alice, rowsum, action):
    request = submit(alice)
    page = page_of(ProfileRequest, of=request.pk)
    assert action in site.get(page).content.decode()

    answer = site.post(page, {"CHANGE_FORM-action": action, "_selected_action": request.pk})

    assert answer.status_code in (200, 302)
    assert (
        AuditEvent.objects.filter(verb__in=["profile.cancel_asked", "profile.rerun_asked"]).count()
        == 1
    )


def test_who_may_only_look_cannot_act(client, rowsum, alice):
    looker = make_person("lou", is_staff=True)
    looker.user_permissions.add(Permission.objects.get(codename="view_profilerequest"))
    client.force_login(looker)
    request = submit(alice)

    assert client.get(page_of(ProfileRequest)).status_code == 200
    client.post(
        page_of(ProfileRequest),
        {"action": "cancel_selected", "_selected_action": [request.pk]},
    )

    assert Job.objects.get().status == "queued"


def test_a_paused_gpu_is_resumed_by_an_operator_and_that_is_recorded(site, olga, alice, rowsum):
    """FR-09: operators see the pause, and end it when the machines are mended."""
    pause = pause_gpu("B200", kind="counters_not_permitted", reason="x", actor_label="dispatcher")
    with pytest.raises(GpuPaused):
        submit(alice)

    assert act(site, GpuPause, "resume", pause) == ["B200 takes jobs again"]

    assert paused_gpus() == {}
    assert AuditEvent.objects.get(verb="gpu.resumed").actor == olga
    assert submit(alice).status == "queued"
    assert act(site, GpuPause, "resume", pause) == ["B200 is not paused"]
