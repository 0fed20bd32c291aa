"""The simulator in a browser: a run is played, its address is the run, and going back is the browser's own."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser.accessibility import violations
from tests.pages.catalog.studio.test_try import ORDER


@pytest.mark.parametrize(("scheme", "width"), [("light", 1400), ("dark", 390)])
def test_a_run_is_played_shared_and_taken_back(as_, engine, transactional_db, scheme: str, width: int):
    engine.publish(ORDER)
    page = as_("viewer", "vic", color_scheme=scheme, viewport={"width": width, "height": 900})
    page.goto("/machines/order/try/")
    add = page.locator("form").filter(has=page.get_by_role("button", name="add", exact=True))
    add.get_by_label("qty").fill("2")
    add.get_by_role("button", name="add", exact=True).click()
    expect(page.get_by_role("heading", name="Step 1")).to_be_visible()
    page.get_by_role("button", name="pay", exact=True).click()
    expect(page.locator(".diagram .state.current")).to_have_attribute("data-state", "Paying")
    expect(page.locator(".diagram .transition.taken")).to_have_attribute("data-events", "pay")
    expect(page.locator("ul.routes")).to_contain_text("n > 0")
    link = page.url
    page.get_by_role("button", name="Advance to the next timer").click()
    expect(page.locator(".diagram .state.current")).to_have_attribute("data-state", "Failed")
    assert violations(page) == []
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    page.go_back()
    expect(page.locator(".diagram .state.current")).to_have_attribute("data-state", "Paying")
    assert page.url == link
    with page.expect_download() as download:
        page.get_by_role("link", name="Download as a scenario").click()
    assert download.value.suggested_filename == "order-run.yaml"
    page.get_by_role("button", name="Created").click()
    expect(page.get_by_text("drops the 2 steps")).to_be_visible()
