"""The Patterns page in a browser: its buttons act."""

from __future__ import annotations

from playwright.sync_api import Page, expect


def test_a_call_is_made_and_seen(page: Page):
    page.goto("/patterns/")
    part = page.locator("#throttle")
    expect(part.get_by_role("row", name="Steady rate")).to_contain_text("5")
    part.get_by_role("button", name="Call once").click()
    expect(page.locator(".toast")).to_contain_text("Throttle: one call was made")
    expect(page).to_have_url("/patterns/#throttle")
    expect(part.get_by_role("row", name="Steady rate")).to_contain_text("4")
