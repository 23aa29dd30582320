"""What operators and owners do, in a real browser against a real service."""

from __future__ import annotations

import json
import re
import zipfile
from urllib.parse import urljoin

import httpx
import pytest

from tests.server.browser.watched import CAPTURES, DESKTOP, LIST, PHONE, SMALL_PHONE, review_of

pytestmark = pytest.mark.browser


def test_an_operator_signs_in_filters_reviews_and_finds_it_again(visit, shown):
    page = visit().sign_in().page
    page.goto(LIST)
    page.get_by_role("link", name="Not reviewed").click()
    page.wait_for_url(re.compile("review=none"))
    page.locator("#result_list tbody tr").last.get_by_role("link", name="open").click()
    page.wait_for_url(re.compile("/review/$"))

    page.get_by_label("Note, which the owner reads too").fill("clocks were locked, good")
    page.get_by_role("button", name="Mark reviewed").click()

    page.get_by_text("The request is marked reviewed.").wait_for()
    page.goto(f"{LIST}?review=reviewed")
    assert page.get_by_role("row").filter(has_text=shown.ids[0]).count() == 1
    page.goto(shown.page)
    page.get_by_text("clocks were locked, good").wait_for()


def test_an_operator_rejects_only_with_a_reason(visit, shown):
    page = visit().sign_in().page
    page.goto(review_of(shown.ids[1]))

    page.get_by_role("button", name="Reject").click()

    page.get_by_text("say in the note why it is rejected").wait_for()


def test_an_operator_compares_two_requests_of_the_list(visit, shown):
    page = visit().sign_in().page
    page.goto(LIST)
    for request_id in shown.ids:
        page.locator(f'input[name="_selected_action"][value="{request_id}"]').check()
    page.locator('select[name="action"]').select_option(label="Compare the two selected requests")
    page.get_by_role("button", name="Run", exact=True).click()

    page.get_by_text("Comparable").wait_for()
    assert page.get_by_text("-20.0 % (faster)").count() >= 3
    page.get_by_role("link", name="Swap A and B").click()
    page.get_by_text("+25.0 % (slower)").first.wait_for()


def test_an_operator_measures_again(visit, shown):
    page = visit().sign_in().page
    page.goto(review_of(shown.ids[1]))

    page.get_by_role("button", name="Measure again").click()

    page.get_by_text("It is measured again as").wait_for()
    page.locator(".related").get_by_text("measured again as").wait_for()


def test_an_owner_downloads_the_archive_under_the_link(visit, shown, tmp_path):
    page = visit().page
    page.goto(shown.page)

    with page.expect_download() as started:
        page.get_by_role("link", name="archive").click()

    saved = tmp_path / "capture.zip"
    started.value.save_as(saved)
    assert started.value.suggested_filename.startswith("rowsum-B200-profile.0-")
    assert "profile.ncu-rep" in zipfile.ZipFile(saved).namelist()


def test_names_of_kernels_do_nothing_in_a_page(visit, shown):
    page = visit().page
    page.goto(shown.page)

    page.get_by_text("<img src=x onerror=").first.wait_for()
    assert page.title() == "Profile of rowsum on B200"


@pytest.mark.parametrize("width", [SMALL_PHONE, PHONE, DESKTOP])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_is_wider_than_the_window(visit, shown, width, scheme):
    watched = visit(width=width, scheme=scheme).sign_in()
    first, second = shown.ids
    for address in (
        shown.page,
        review_of(first),
        f"{LIST}{first}/compare/?with={second}",
        f"{shown.page}?capture=2",
        LIST,
        CAPTURES,
    ):
        watched.page.goto(address)
        watched.page.evaluate("document.querySelectorAll('details').forEach(e => e.open = true)")
        assert watched.overflow() <= 0, address
        assert watched.page.locator("table").count(), address
        assert watched.cut_tables() == [], address


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_list_of_the_admin_site_is_seen_whole_on_a_desktop(visit, shown, scheme):
    watched = visit(scheme=scheme).sign_in()
    names = watched.page.locator("#content-main th a").evaluate_all("all => all.map(e => e.href)")
    assert len(names) > 10
    for address in names:
        watched.page.goto(address)
        assert watched.overflow() <= 0, address
        assert watched.cut_tables() == [], address


def test_on_a_phone_every_value_of_a_launch_and_a_change_stands_below_its_name(visit, shown):
    watched = visit(width=PHONE).sign_in()
    first, second = shown.ids
    watched.page.goto(review_of(first))
    launch = watched.page.locator("table.sortable tbody tr").nth(2)
    labels = launch.locator("[data-label]").evaluate_all("all => all.map(e => e.dataset.label)")
    heads = watched.page.locator("table.sortable thead th a").all_inner_texts()
    assert labels == heads
    assert launch.get_by_role("cell").count() + launch.get_by_role("rowheader").count() == 11
    for cell in launch.locator("[data-label]").all():
        box = cell.bounding_box()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= PHONE

    watched.page.goto(f"{LIST}{first}/compare/?with={second}")
    change = watched.page.get_by_text("-20.0 % (faster)").first
    assert change.get_attribute("data-label") == "Change"
    box = change.bounding_box()
    assert box["x"] + box["width"] <= PHONE


def test_launches_are_sorted_on_a_phone(visit, shown):
    page = visit(width=SMALL_PHONE).page
    page.goto(shown.page)

    page.get_by_role("link", name="Duration", exact=True).click()

    first = page.locator("table.sortable tbody tr").first
    assert first.locator("td").first.inner_text() == "3"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_and_charts_are_seen_against_their_ground(visit, shown, scheme):
    """WCAG's contrast of 4.5 for text, and drawings that are not empty."""
    page = visit(scheme=scheme).page
    page.goto(shown.page)
    page.locator("canvas").first.wait_for()

    for place in (".review p", ".verdict", ".origin", ".hint", ".review td", ".speedup", ".kind"):
        assert page.evaluate(CONTRAST, place) >= 4.5, place
    assert page.locator("canvas").count() == 4
    for canvas in page.locator("canvas").all():
        assert canvas.evaluate(IS_DRAWN)


def test_charts_follow_the_switch_of_the_admin_site(visit, shown):
    page = visit().sign_in().page
    page.goto(review_of(shown.ids[0]))
    before = page.locator("canvas").first.evaluate("each => each.toDataURL()")

    page.evaluate("document.documentElement.dataset.theme = 'dark'")

    page.wait_for_function(
        "before => document.querySelectorAll('canvas').length === 4"
        " && document.querySelector('canvas').toDataURL() !== before",
        arg=before,
    )


def test_an_owner_compares_by_pasting_another_link(visit, shown):
    page = visit().page
    page.goto(shown.page)
    again = page.locator(".related a").first.get_attribute("href")

    page.get_by_label("Compare with another request").fill(urljoin(shown.base_url, again))
    page.get_by_role("button", name="Compare").click()

    page.get_by_text("Comparable").wait_for()
    assert page.get_by_text("not measured on a GPU for this request").count() == 2


# The least contrast of the elements at a selector with the ground that they stand on.
CONTRAST = """selector => {
  const canvas = document.createElement("canvas").getContext("2d", {willReadFrequently: true});
  const rgba = (colour) => {
    canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1);
    return canvas.getImageData(0, 0, 1, 1).data;
  };
  const light = ([r, g, b]) => {
    const part = (each) => ((each /= 255) <= 0.03928 ? each / 12.92 : ((each + 0.055) / 1.055) ** 2.4);
    return 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b);
  };
  const ground = (element) => {
    for (; element; element = element.parentElement) {
      const found = rgba(getComputedStyle(element).backgroundColor);
      if (found[3] === 255) return found;
    }
    return [255, 255, 255, 255];
  };
  const found = [...document.querySelectorAll(selector)].map((element) => {
    const [one, two] = [light(rgba(getComputedStyle(element).color)), light(ground(element))];
    return (Math.max(one, two) + 0.05) / (Math.min(one, two) + 0.05);
  });
  return found.length ? Math.min(...found) : 0;
}"""
IS_DRAWN = """canvas => {
  const seen = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
  return new Set(new Uint32Array(seen.buffer)).size > 2;
}"""


def test_the_docs_page_shows_every_operation_and_loads_nothing_from_elsewhere(visit, shown):
    page, asked = visit().page, []
    page.on("request", lambda request: asked.append(request.url))

    page.goto("/docs")
    page.get_by_text("/profile/{leaderboard}/{gpu}", exact=True).click()

    page.get_by_role("heading", name="Parameters").wait_for()
    assert page.get_by_text("/admin/update-problems", exact=True).count() == 1
    assert [url for url in asked if not url.startswith((shown.base_url, "data:"))] == []


def test_counters_that_are_no_numbers_leave_every_line_strict_json(shown):
    """FR-19: NaN and both infinities, in the stream and in the answers beside it."""
    place = f"{shown.base_url}/api/profile-requests/{shown.ids[0]}/"
    signed = {"X-Popcorn-Cli-Id": "alice-cli-id"}

    def refuse(word):
        raise AssertionError(f"{word} is no JSON")

    def strict(text):
        return json.loads(text, parse_constant=refuse)

    sent = httpx.get(f"{place}stream/", headers=signed, timeout=30).text
    lines = [line.removeprefix("data: ") for line in sent.splitlines() if line.startswith("data")]
    captures = strict(httpx.get(place, headers=signed).text)["captures"]
    summary = strict(httpx.get(f"{place}summary.json", headers=signed).text)

    assert [strict(line) for line in lines]
    assert "event: result" in sent
    states = {each["name"]: each["state"] for each in captures[0]["unavailable_counters"]}
    assert states == {
        "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active": "nan",
        "smsp__cycles_active.avg": "inf",
    }
    assert summary["captures"]
