"""What people write that is long, large, many, or from right to left: each page stays readable, also on a phone."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from tests.browser.accessibility import violations

RIGHT_TO_LEFT = "سلة المشتريات (١)"
LARGE = "a word " * 9_000  # 63 KB: data of an instance has at most 64 KiB
MACHINE = {
    "id": "extremes", "initial": "Open", "context": {"note": ""}, "index": ["instance.id"],
    "states": {"Open": {"on": {"pay": RIGHT_TO_LEFT}}, RIGHT_TO_LEFT: {"tags": ["paid"]}},
}  # fmt: skip
PHONE = {"width": 390, "height": 844}
BEYOND = """() => [...document.querySelectorAll("main *")]
  .filter((one) => !one.closest("svg, [data-diagram]") && one.getBoundingClientRect().right > innerWidth + 1)
  .map((one) => one.outerHTML.slice(0, 90))"""


def is_whole(page: Page) -> None:
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0, page.evaluate(BEYOND)
    assert violations(page) == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_names_from_right_to_left_stay_whole_and_in_their_order(as_, engine, scheme: str):
    engine.publish(MACHINE)
    engine.create("extremes", RIGHT_TO_LEFT)
    engine.fire("extremes", RIGHT_TO_LEFT, "pay")
    page = as_("operator", "ann", color_scheme=scheme, viewport=PHONE)
    page.goto("/machines/extremes/")
    expect(
        page.locator(f'.picture .state[data-state="{RIGHT_TO_LEFT}"], .sb-diagram .state[data-state="{RIGHT_TO_LEFT}"]')
    ).to_have_count(1)
    is_whole(page)
    page.locator("table.instances a.key", has_text=RIGHT_TO_LEFT).click()
    expect(page.get_by_role("heading", level=1)).to_have_text(RIGHT_TO_LEFT)
    is_whole(page)


def test_a_value_of_64_kib_is_shown_without_widening_the_page(as_, engine):
    engine.publish(MACHINE)
    engine.create("extremes", "large", {"note": LARGE.strip()})
    engine.create("extremes", "one word", {"note": "x" * 65_000})
    page = as_("operator", "ann", viewport=PHONE)
    for id in ("large", "one%20word"):
        page.goto(f"/machines/extremes/{id}/")
        expect(page.get_by_role("heading", level=1)).to_be_visible()
        is_whole(page)
    page.goto("/machines/extremes/")
    expect(page.locator("table.instances a.key")).to_have_count(2)
    is_whole(page)
    page.goto("/search/?q=word&all=1")
    expect(page.locator("main")).to_contain_text("large")
    is_whole(page)


def test_five_thousand_results_come_in_pages(as_, engine):
    engine.publish(MACHINE)
    for number in range(5_000):
        engine.create("extremes", f"acme-{number:04}")
    page = as_("operator", "ann")
    page.goto("/search/?q=acme&all=1")
    expect(page.locator("main")).to_contain_text("first 20 shown, more exist")
    assert page.locator("main a").count() < 200
    is_whole(page)
    page.goto("/machines/extremes/")
    expect(page.locator("main")).to_contain_text("5,000")
    assert page.locator("table.instances tbody tr").count() <= 100
    page.get_by_role("link", name="next").first.click()
    expect(page.get_by_role("link", name="prev").first).to_be_visible()
    is_whole(page)


def test_a_name_of_300_characters_is_refused_where_it_is_written(as_, engine):
    engine.publish(MACHINE)
    page = as_("publisher", "sue")
    page.goto("/machines/extremes/edit/")
    expect(page.locator("form[data-checked]")).to_be_attached()
    page.locator(".picture .state[data-state=Open]").focus()
    page.keyboard.press("F2")
    page.locator(".draw input").fill("x" * 300)
    page.keyboard.press("Enter")
    expect(page.locator(".draw [role=alert]")).to_contain_text("at most 100")
    is_whole(page)
    page.locator(".draw input").fill(RIGHT_TO_LEFT[::-1])
    page.keyboard.press("Enter")
    expect(page.locator(f'.picture .state[data-state="{RIGHT_TO_LEFT[::-1]}"]')).to_be_focused()
    is_whole(page)


def test_a_search_for_300_characters_is_answered(as_, engine):
    engine.publish(MACHINE)
    page = as_("operator", "ann", viewport=PHONE)
    answer = page.goto(f"/search/?q={'x' * 300}")
    assert answer is not None
    assert answer.status == 200
    is_whole(page)
