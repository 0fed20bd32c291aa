"""The bar at every width: each entry is in it or in its menu, none lies over another one, with any font."""

from __future__ import annotations

import pytest
from django.contrib.auth import get_user_model
from playwright.sync_api import Page, expect

from dashboard.shared.navigation import NAVIGATION_LINKS

from .conftest import PASSWORD, log_in

ENTRIES = [place.label.split()[0] for place in NAVIGATION_LINKS if not place.in_foot]
WIDTHS = [320, 360, 376, 390, 488, 576, 640, 641, 744, 840, 936, 1024, 1128, 1272, 1273, 1324, 1400, 1420, 1516, 1920]
WIDE_LETTERS = ".bar, .bar * { font-family: 'DejaVu Sans', sans-serif !important; }"
FAULTS = """() => {
    const PARTS = ".bar nav > a, .bar summary, .bar .search, .bar .who > :not(.unseen), .brand";
    const seen = [...document.querySelectorAll(PARTS)]
        .filter((e) => e.checkVisibility() && e.getBoundingClientRect().width > 0)
        .map((e) => [e.textContent.trim() || e.className, e.getBoundingClientRect()]);
    const outside = seen.filter(([, box]) => box.right > innerWidth + 0.5 || box.left < 0).map(([name]) => name);
    const over = ([, a], [, b]) =>
        a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 1 && b.top < a.bottom - 1;
    const overlaps = seen.flatMap((a, i) => seen.slice(i + 1).filter((b) => over(a, b)).map((b) => [a[0], b[0]]));
    const wide = document.documentElement.scrollWidth > innerWidth ? ["the page scrolls"] : [];
    return [...outside, ...overlaps, ...wide];
}"""


@pytest.fixture
def staff(as_, waiting) -> Page:
    """A page of somebody who may open every entry of the bar."""
    page = as_("supervisor", "sue")
    get_user_model().objects.filter(username__contains="sue").update(is_staff=True)
    page.goto("/approvals/")
    return page


def shown(page: Page) -> list[str]:
    return [link.strip().split()[0] for link in page.locator(".bar nav a[data-at]:visible").all_inner_texts()]


@pytest.mark.parametrize("letters", ["", WIDE_LETTERS], ids=["own", "wide"])
def test_every_entry_is_in_the_bar_or_in_its_menu_and_nothing_overlaps(staff, letters):
    if letters:
        staff.evaluate(
            "css => { const s = new CSSStyleSheet(); s.replaceSync(css); document.adoptedStyleSheets = [s]; }", letters
        )
    more = staff.locator(".bar summary")
    for width in WIDTHS:
        staff.set_viewport_size({"width": width, "height": 800})
        assert staff.evaluate(FAULTS) == [], width
        more.click()
        assert shown(staff) == ENTRIES, width
        assert staff.evaluate(FAULTS) == [], f"{width}, with the menu open"
        more.click()
        marked = staff.locator(".bar nav > [aria-current]:visible, .bar summary").first
        assert marked.evaluate("e => getComputedStyle(e).borderBottomColor") != "rgba(0, 0, 0, 0)", width
        assert staff.locator(".bar [data-search]").is_visible() != staff.locator(".bar .find").is_visible(), width


def test_the_menu_opens_and_closes_by_the_keyboard(staff):
    staff.set_viewport_size({"width": 1280, "height": 800})
    summary = staff.locator(".bar summary")
    summary.focus()
    staff.keyboard.press("Enter")
    staff.keyboard.press("Tab")
    first = staff.locator(".more a:visible").first
    expect(first).to_be_focused()
    staff.keyboard.press("Escape")
    expect(staff.locator(".more a:visible")).to_have_count(0)
    expect(summary).to_be_focused()
    staff.keyboard.press("Enter")
    staff.get_by_role("link", name="Webhooks").click()
    expect(staff.get_by_role("heading", name="Webhooks", exact=True)).to_be_visible()


def test_the_menu_works_without_script(browser, user_of):
    plain = browser(java_script_enabled=False, viewport={"width": 1280, "height": 800}).new_page()
    log_in(plain, user_of("supervisor").username, PASSWORD)
    plain.locator(".bar summary").click()
    plain.get_by_role("link", name="Audit").click()
    expect(plain.get_by_role("heading", name="Audit", exact=True)).to_be_visible()
