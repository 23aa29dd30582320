"""The page of a request, as operators and link holders see it."""

from __future__ import annotations

import re

import pytest
from django.contrib.auth.models import Permission
from django.urls import reverse
from django.utils import timezone

from leaderboards.models import AuditEvent
from profiling.actions import rerun_request
from profiling.links import new_link
from profiling.models import ProfileRequest, Review
from runners.gpu.contract import Note, NoteKind, RunResult
from tests.conftest import make_person
from tests.profiling.envelopes import a_launch, make_archive
from tests.profiling.evidence import archive_of, finished_profile
from tests.profiling.orders import refuse, submit
from tests.profiling.pages import HOSTILE, page_of, text_of
from tests.reports.samples import needs_samples, sample

API = ProfileRequest.Origin.API


def review_of(request: ProfileRequest) -> str:
    return reverse("admin:profiling_profilerequest_review", args=[request.pk])


def owner_page_of(request: ProfileRequest) -> str:
    return reverse("profile-page", args=[new_link(request).token])


@pytest.fixture(params=[review_of, owner_page_of], ids=["operator", "owner"])
def page(request):
    """Gives the address of a profile's page, of either kind."""
    return request.param


@pytest.fixture
def profile(alice, rowsum, tmp_path):
    """Benchmark 0 with three launches, the second one the longest; no others came back."""
    return finished_profile(
        alice, tmp_path, {0: make_archive(tmp_path / "a.zip", three_launches())}
    )


def three_launches(prefix: str = "k"):
    return [
        a_launch(f"{prefix}{place}", **{"gpu__time_duration.sum": duration})
        for place, duration in enumerate((2000.0, 9000.0, 5000.0))
    ]


@pytest.fixture
def full(alice, rowsum, tmp_path):
    """A profile whose first benchmark brought a real report of the full set."""
    archive = archive_of(sample("t4-ncu2024.2-full.ncu-rep"), tmp_path / "full.zip")
    return finished_profile(alice, tmp_path, {0: archive})


# --- What is shown ---


@needs_samples
def test_a_full_report_shows_all_its_parts_on_one_screen(site, full, page):
    text = text_of(site, page(full))

    for part in (
        "Asked and measured",
        "bound by <strong>memory</strong>",
        "What the rules found",
        "estimated speed-up",
        "Throughput and occupancy",
        "Why warps wait",
        "long scoreboard",
        "Cache hit rates",
        "This launch, FP32",
        "DRAM bandwidth",
        "Hot spots in the code",
        "GPU Speed Of Light Throughput",
        "profile.ncu-rep",
        "opens in Nsight Compute 2024.2",
        "What became of it",
    ):
        assert part in text, part
    assert 'data-value="88.39' in text
    assert not re.search(r"""<[^>]*\s(style|on\w+)=""", text), "the policy forbids inline code"


@needs_samples
def test_differences_between_asked_and_measured_are_marked(site, full, page):
    """FR-23: the GPU of the report is not the one that was asked for."""
    text = text_of(site, page(full))

    marked = re.findall(r'<tr class="differs"><th scope="row">([^<]+)', text)
    assert "GPU" in marked
    assert "Tesla T4" in text
    assert '<span class="verdict degraded">degraded</span>' in text
    said = "<code>gpu_differs</code> B200 was asked for, the report says Tesla T4."
    assert text.count(said) == 1


def test_captures_that_did_not_come_back_say_why(site, profile, page):
    text = text_of(site, f"{page(profile)}?capture=1")

    assert "compile_failed" in text
    assert "(fault of the submission): error: no such file" in text


def test_what_no_gpu_measured_says_so(site, alice, rowsum, tmp_path, page):
    archive = make_archive(tmp_path / "a.zip")
    made = finished_profile(alice, tmp_path, {0: archive}, origin="recorded")

    assert "not measured on a GPU for this request" in text_of(site, page(made))
    other = reverse("profile-page-compare", args=[new_link(made).token])
    assert "not measured on a GPU" in text_of(site, f"{other}?with={new_link(made).token}")


def test_names_logs_and_notes_of_strangers_stay_text(site, olga, alice, rowsum, tmp_path, page):
    printed = RunResult(
        success=True,
        passed=True,
        command="python3 eval.py",
        stdout=HOSTILE,
        stderr=f"</pre>{HOSTILE}",
        exit_code=0,
        duration=1.0,
        result={"check": "pass"},
    )
    note = Note(kind=NoteKind.LAUNCH_LIMIT_REACHED, message=HOSTILE)
    made = finished_profile(
        alice,
        tmp_path,
        {0: make_archive(tmp_path / "a.zip", [a_launch(HOSTILE)])},
        record={"notes": (note,), "run": printed},
        ncu_kernel_name=HOSTILE,
    )
    Review.objects.create(request=made, reviewer=olga, decision="rejected", note=HOSTILE)

    text = text_of(site, page(made))

    assert text.count("&lt;script&gt;alert(") >= 6
    assert "<script>alert" not in text
    assert "</pre>&lt;" not in text


def test_a_waiting_and_a_refused_request_have_a_page_too(site, alice, rowsum, page):
    assert "There is no capture yet" in text_of(site, page(submit(alice)))
    assert "the submitted file is empty" in text_of(site, review_of(refuse(alice)))


# --- Choosing ---


def test_the_longest_launch_is_shown_first_and_any_other_by_its_link(site, profile, page):
    assert "Launch 1: k1" in text_of(site, page(profile))
    assert "Launch 2: k2" in text_of(site, f"{page(profile)}?launch=2")


@pytest.mark.parametrize(
    ("sort", "order"),
    [("-m0", [1, 2, 0]), ("m0", [0, 2, 1]), ("launch", [0, 1, 2]), ("-kernel", [2, 1, 0])],
)
def test_launches_are_sorted_by_links_without_a_script(site, profile, page, sort, order):
    text = text_of(site, f"{page(profile)}?sort={sort}")

    assert [int(row) for row in re.findall(r'data-key="\d">(\d)</td>', text)] == order
    turned = sort.removeprefix("-") if sort.startswith("-") else f"-{sort}"
    assert re.search(rf"aria-sort=[^>]+><a href=\"[^\"]*sort={turned}#", text)


@pytest.mark.parametrize(
    "query",
    ["capture=77", "capture=-1&launch=x", "launch=999999999999", "sort=-nothing", "launch=9"],
)
def test_a_choice_that_there_is_not_shows_the_usual(site, profile, page, query):
    assert "Launch 1: k1" in text_of(site, f"{page(profile)}?{query}")


# --- Links ---


def test_a_link_opens_its_request_alone_and_needs_no_account(client, profile, alice):
    other = submit(alice, content=b"other\n")
    link = new_link(profile).token

    assert client.get(reverse("profile-page", args=[link])).status_code == 200
    forged = link.replace(profile.pk.hex, other.pk.hex)
    answer = client.get(reverse("profile-page", args=[forged]))
    assert answer.status_code == 404
    assert "This link was not made here" in answer.content.decode()


def test_a_link_expires(client, profile, settings):
    settings.REVIEW_LINK_DAYS = -0.001

    answer = client.get(owner_page_of(profile))

    assert answer.status_code == 404
    assert "expired" in answer.content.decode()


@pytest.mark.parametrize("column", ["request", "submission"])
def test_a_link_ends_when_what_it_shows_is_deleted(client, profile, column):
    row = profile if column == "request" else profile.submission
    row.deleted_at = timezone.now()
    row.save()

    assert client.get(owner_page_of(profile)).status_code == 404


def test_the_pages_around_a_link_end_with_it(client, profile, alice):
    again = rerun_request(profile, actor=alice, origin=API)
    link = new_link(profile)

    text = client.get(reverse("profile-page", args=[link.token])).content.decode()

    assert reverse("profile-page", args=[link.to(again).token]) in text
    assert f"{again.pk.hex}.{link.until}." in text


def test_files_are_downloaded_under_the_link(client, profile):
    page = owner_page_of(profile)
    text = client.get(page).content.decode()

    (archive,) = re.findall(r'href="([^"]+/archive)"', text)
    answer = client.head(archive)
    assert answer.status_code == 200
    assert answer["Content-Disposition"].startswith("attachment")
    stored = profile.captures.get(benchmark_index=0).artifact
    assert answer["Content-Length"] == str(stored.size)
    for address in (f"{page}/captures/0/nothing", f"{page}/captures/9/archive"):
        assert client.get(address).status_code == 404
    assert client.get(f"{page}/captures/{10**30}/archive").status_code == 404


def test_a_link_takes_nothing(client, profile):
    assert client.post(owner_page_of(profile), {"deed": "reviewed", "note": "x"}).status_code == 405


def test_strict_policies_stand_on_every_page(site, profile, page):
    answer = site.get(page(profile))

    policy = answer["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "no-store" in answer["Cache-Control"]


# --- What operators decide ---


def test_an_operator_reviews_on_the_page_and_the_owner_reads_it(site, olga, profile):
    answer = site.post(review_of(profile), {"deed": "rejected", "note": "clocks"}, follow=True)

    assert [str(said) for said in answer.context["messages"]] == ["The request is marked rejected."]
    assert AuditEvent.objects.get(verb="profile.rejected").address == "127.0.0.1"
    assert "Rejected" in answer.content.decode()
    owners = text_of(site, owner_page_of(profile))
    assert "clocks" in owners
    assert "olga" not in owners


def test_a_rejection_without_a_note_is_told(site, profile):
    answer = site.post(review_of(profile), {"deed": "rejected", "note": ""}, follow=True)

    assert "why it is rejected" in answer.content.decode()
    assert not Review.objects.exists()


def test_an_operator_measures_again_on_the_page(site, profile, olga):
    answer = site.post(review_of(profile), {"deed": "rerun"}, follow=True)

    again = ProfileRequest.objects.get(rerun_of=profile)
    assert (again.user, again.origin) == (profile.user, "admin")
    assert review_of(again) in answer.content.decode()
    assert review_of(profile) in text_of(site, review_of(again))


def test_who_may_only_look_decides_nothing(client, profile):
    looker = make_person("lou", is_staff=True)
    looker.user_permissions.add(Permission.objects.get(codename="view_profilerequest"))
    client.force_login(looker)

    text = text_of(client, review_of(profile))
    client.post(review_of(profile), {"deed": "reviewed"})

    assert "Mark reviewed" not in text
    assert not Review.objects.exists()


def test_who_may_not_look_sees_no_page(client, profile, bob):
    client.force_login(bob)
    assert client.get(review_of(profile)).status_code == 302
    client.force_login(make_person("lou", is_staff=True))
    assert client.get(review_of(profile)).status_code == 403


@pytest.mark.parametrize(("chosen", "found"), [("none", 1), ("reviewed", 1), ("rejected", 0)])
def test_the_list_is_filtered_by_review(site, profile, alice, chosen, found):
    submit(alice, content=b"other\n")
    site.post(review_of(profile), {"deed": "reviewed", "note": ""})

    page = site.get(page_of(ProfileRequest), {"review": chosen})

    assert len(page.context["cl"].result_list) == found
    assert review_of(profile) in text_of(site, page_of(ProfileRequest))


# --- Cost ---

# Session and person for operators; then request, captures, the chosen one, re-runs, reviews, events.
COST = {review_of: 8, owner_page_of: 6}


def test_a_page_costs_the_same_number_of_queries_whatever_it_shows(
    site, alice, rowsum, tmp_path, page, django_assert_num_queries
):
    small = finished_profile(
        alice, tmp_path, {0: make_archive(tmp_path / "a.zip", [a_launch("one")])}
    )
    large = finished_profile(
        alice,
        tmp_path,
        {index: make_archive(tmp_path / f"{index}.zip", three_launches() * 20) for index in (0, 1)},
        content=b"large\n",
    )
    for _ in range(5):
        rerun_request(large, actor=alice, origin=API)

    with django_assert_num_queries(COST[page]):
        site.get(page(small))
    with django_assert_num_queries(COST[page]):
        site.get(page(large))
