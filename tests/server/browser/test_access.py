"""With the keyboard alone, and without scripts."""

from __future__ import annotations

import re

import pytest

from tests.server.browser.watched import LIST, review_of

pytestmark = pytest.mark.browser

FOCUSED = """() => {
  const element = document.activeElement;
  if (!element || element === document.body) return null;
  return [element.textContent.trim(), parseFloat(getComputedStyle(element).outlineWidth)];
}"""


def test_launches_are_sorted_with_the_keyboard(visit, shown):
    page = visit().page
    page.goto(shown.page)
    duration = page.get_by_role("link", name="Duration", exact=True)

    duration.focus()
    page.keyboard.press("Enter")

    first = page.locator("table.sortable tbody tr").first
    assert first.locator("td").first.inner_text() == "3"
    assert page.locator("th", has=duration).get_attribute("aria-sort") == "descending"
    page.keyboard.press("Enter")
    assert first.locator("td").first.inner_text() == "0"
    assert page.url == shown.page  # nothing was loaded


def test_everything_is_reached_by_tab_and_the_focus_is_seen(visit, shown):
    page = visit().page
    page.goto(shown.page)
    reached = set()
    for _ in range(60):
        page.keyboard.press("Tab")
        focused = page.evaluate(FOCUSED)
        if focused is None:
            break
        text, outline = focused
        reached.add(text)
        assert outline > 0, text
    for wanted in ("Duration", "fill_kernel", "archive", "ncu-details.csv", "compare", "Compare"):
        assert wanted in reached


def test_without_scripts_the_tables_and_links_do_the_work(visit, shown):
    page = visit(scripts=False).page
    page.goto(shown.page)
    assert page.locator("canvas").count() == 0
    assert page.locator("table.bars").first.is_visible()

    page.get_by_role("link", name="Duration", exact=True).click()

    page.wait_for_url(re.compile("sort=-m0"))
    assert page.locator("table.sortable tbody tr td").first.inner_text() == "3"
    page.get_by_role("link", name="fill_kernel").click()
    page.get_by_role("heading", name="Launch 1: fill_kernel").wait_for()


def test_without_scripts_an_operator_filters_reviews_and_compares(visit, shown):
    page = visit(scripts=False).sign_in().page
    first, second = shown.ids
    page.goto(f"{LIST}?gpu=B200")
    page.get_by_role("link", name="Succeeded", exact=True).click()
    page.get_by_role("row").filter(has_text=second).locator(".field-shown_review a").click()
    page.get_by_label("Note, which the owner reads too").fill("seen without scripts")
    page.get_by_role("button", name="Mark reviewed").click()
    page.get_by_text("seen without scripts").first.wait_for()

    page.get_by_label("Compare with another request").fill(first)
    page.get_by_role("button", name="Compare").click()

    page.get_by_role("row", name="Duration").first.get_by_text("slower").wait_for()
    assert page.locator("table.changes").count() >= 3


def test_an_operator_reviews_with_the_keyboard_alone(visit, shown):
    page = visit().sign_in().page
    page.goto(review_of(shown.ids[1]))
    page.get_by_label("Note, which the owner reads too").focus()

    page.keyboard.type("by keyboard")
    page.keyboard.press("Tab")
    assert page.evaluate(FOCUSED)[0] == "Mark reviewed"
    page.keyboard.press("Enter")

    page.get_by_text("by keyboard").first.wait_for()


def test_launches_of_a_comparison_are_opened_with_the_keyboard(visit, shown):
    page = visit().sign_in().page
    first, second = shown.ids
    page.goto(f"{LIST}{first}/compare/?with={second}")
    last = page.locator("details").last
    assert last.get_attribute("open") is None

    last.locator("summary").focus()
    page.keyboard.press("Enter")

    last.get_by_role("row", name="Duration").wait_for()
