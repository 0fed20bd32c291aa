"""The API's own page in a real browser: folded and linked."""

from __future__ import annotations

from playwright.sync_api import expect


def test_an_address_unfolds_its_operation(page):
    page.goto("/api/v1/docs#fireEvent")
    expect(page.locator("#fireEvent")).to_have_attribute("open", "")
    expect(page.locator("#fireEvent pre")).to_contain_text("curl -H 'Authorization: Bearer")


def test_a_problems_type_leads_to_its_code(page, engine, waiting):
    page.goto("/api/v1/docs#SB430")
    expect(page.locator("#SB430")).to_be_in_viewport()
    expect(page.locator("#SB430")).to_contain_text("Refused")
