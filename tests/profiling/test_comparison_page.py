"""Two requests beside each other, for operators and link holders."""

from __future__ import annotations

import pytest
from django.urls import reverse

from profiling.actions import rerun_request
from profiling.links import new_link
from profiling.models import ProfileRequest
from tests.profiling.envelopes import a_launch, make_archive
from tests.profiling.evidence import finished_profile
from tests.profiling.orders import submit
from tests.profiling.pages import HOSTILE, page_of, text_of

API = ProfileRequest.Origin.API


def operators_view(base: ProfileRequest, other: ProfileRequest) -> str:
    place = reverse("admin:profiling_profilerequest_compare", args=[base.pk])
    return f"{place}?with={other.pk}"


def owners_view(base: ProfileRequest, other: ProfileRequest) -> str:
    place = reverse("profile-page-compare", args=[new_link(base).token])
    return f"{place}?with={new_link(other).token}"


@pytest.fixture(params=[operators_view, owners_view], ids=["operator", "owner"])
def view(request):
    return request.param


@pytest.fixture
def measure(alice, rowsum, tmp_path):
    """Gives a finished profile whose launches took so many nanoseconds."""

    def make(*durations: float, owner=alice, request=None, **report):
        name = f"{len(list(tmp_path.iterdir()))}.zip"
        launches = [
            a_launch(f"k{place}", **{"gpu__time_duration.sum": duration})
            for place, duration in enumerate(durations)
        ]
        archive = make_archive(tmp_path / name, launches, **report)
        return finished_profile(owner, tmp_path, {0: archive}, request=request)

    return make


def test_a_rerun_is_compared_metric_by_metric(site, alice, measure, view):
    first = measure(1000.0, 4000.0)
    again = measure(800.0, 6000.0, request=rerun_request(first, actor=alice, origin=API))

    text = text_of(site, view(first, again))

    assert "<strong>Comparable</strong>" in text
    assert "-20.0 % (faster)" in text
    assert "+50.0 % (slower)" in text
    assert "k1" in text
    assert "-20.0 % (faster)" not in text_of(site, view(again, first))


def test_what_makes_two_captures_incomparable_is_told(site, alice, measure, view):
    """FR-23: another profiler or GPU changes values by itself."""
    first = measure(1000.0)
    again = rerun_request(first, actor=alice, origin=API)
    other = measure(1000.0, request=again, ncu_version="2026.2.0.0 (build 1)", gpu="NVIDIA H100")

    text = text_of(site, view(first, other))

    assert "<strong>Not comparable</strong>" in text
    assert "2026.2.0.0" in text
    assert "NVIDIA H100" in text
    assert "matters" in text


def test_launches_that_only_one_has_are_told(site, alice, measure, view):
    first = measure(1000.0, 2000.0)
    again = measure(900.0, request=rerun_request(first, actor=alice, origin=API))

    assert "only in A" in text_of(site, view(first, again))
    assert "only in B" in text_of(site, view(again, first))


def test_profiles_without_a_capture_in_common_say_so(site, alice, measure, view):
    first = measure(1000.0)
    waiting = submit(alice, content=b"other\n")

    assert "no benchmark in common" in text_of(site, view(first, waiting))


def test_the_page_of_a_request_leads_to_the_comparison_with_its_rerun(site, alice, measure):
    first = measure(1000.0)
    again = measure(900.0, request=rerun_request(first, actor=alice, origin=API))

    page = text_of(site, reverse("admin:profiling_profilerequest_review", args=[first.pk]))

    assert operators_view(first, again) in page


@pytest.mark.parametrize("typed", ["id", "operators' page", "link"])
def test_operators_may_paste_an_id_or_either_address(site, alice, measure, typed):
    first, other = measure(1000.0), submit(alice, content=b"other\n")
    pasted = {
        "id": f" {other.pk} ",
        "operators' page": f"https://x/operators/profiling/profilerequest/{other.pk}/review/",
        "link": f"https://x/profile/{new_link(other).token}",
    }
    place = reverse("admin:profiling_profilerequest_compare", args=[first.pk])

    answer = site.get(place, {"with": pasted[typed]})

    assert str(other.pk) in answer.content.decode()


@pytest.mark.parametrize("typed", ["", "nonsense", HOSTILE, "0" * 400])
def test_what_names_no_request_is_told_to_operators(site, measure, typed):
    place = reverse("admin:profiling_profilerequest_compare", args=[measure(1000.0).pk])

    answer = site.get(place, {"with": typed}, follow=True)

    assert "There is no such request." in answer.content.decode()


@pytest.mark.parametrize("typed", ["", "nonsense", HOSTILE])
def test_a_link_compares_with_what_another_link_opens_and_nothing_else(
    client, alice, measure, typed
):
    first, other = measure(1000.0), submit(alice, content=b"other\n")
    place = reverse("profile-page-compare", args=[new_link(first).token])

    for named in (typed, str(other.pk), f"{other.pk.hex}.{new_link(first).until}.{'x' * 43}"):
        assert client.get(place, {"with": named}).status_code == 404
    link = f"https://elsewhere.example/profile/{new_link(other).token}"
    assert client.get(place, {"with": link}).status_code == 200


def test_two_people_s_profiles_are_compared_by_operators_and_by_who_has_both_links(
    site, client, alice, bob, measure
):
    mine, theirs = measure(1000.0), measure(500.0, owner=bob)

    for page in (
        text_of(site, operators_view(mine, theirs)),
        text_of(client, owners_view(mine, theirs)),
    ):
        assert "-50.0 % (faster)" in page
        assert "<strong>Comparable</strong>" in page
    by_id = reverse("profile-page-compare", args=[new_link(mine).token])
    assert client.get(by_id, {"with": str(theirs.pk)}).status_code == 404


def test_two_selected_requests_are_compared_the_older_one_first(site, alice, measure):
    first, other = measure(1000.0), measure(900.0, 2.0)
    form = {"action": "compare_selected", "_selected_action": [other.pk, first.pk]}

    answer = site.post(page_of(ProfileRequest), form)
    assert answer["Location"] == operators_view(first, other)

    form["_selected_action"] = [first.pk]
    answer = site.post(page_of(ProfileRequest), form, follow=True)
    assert [str(said) for said in answer.context["messages"]] == ["Select two requests to compare."]
