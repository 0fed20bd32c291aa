"""The Patterns page in a browser: its forms act, and it renews itself unless a person is busy there."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from dashboard.examples.patterns import SECTIONS
from machines.patterns import Throttle
from tests.browser.conftest import keys_work

limited = SECTIONS["throttle"]


@pytest.fixture
def patterns(page: Page) -> Page:
    page.goto("/patterns/")
    return page


def part(page: Page, name: str):
    return page.locator(f"#{name}")


def press(page: Page, section: str, button: str, said: str):
    part(page, section).get_by_role("button", name=button).click()
    expect(page.locator(".toast")).to_contain_text(said)


def test_the_throttle_allows_its_burst_and_then_refuses(patterns):
    for left in range(limited.LIMIT - 1, -1, -1):
        press(patterns, "throttle", "Send at a steady rate", f"Allowed: 1 used, {left} remaining")
    part(patterns, "throttle").get_by_role("combobox").select_option("2")
    press(patterns, "throttle", "Send at a steady rate", "Refused: retry in")
    expect(patterns).to_have_url("/patterns/#throttle")


def test_a_section_renews_itself_unless_a_person_fills_it_in_or_pauses(page, engine, prefix):
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url.partition("/patterns/")[1]))
    page.clock.install()
    page.goto("/patterns/#throttle")
    section = part(page, "throttle")
    keys_work(page)
    section.get_by_text("Example and guarantees").click()
    page.locator("h1").click()
    Throttle(engine.client, prefix).take(limited.BUCKET, limited.KEY, limit=limited.LIMIT, per=3600)
    page.clock.run_for(2500)
    expect(section).to_contain_text("demo.hits")
    expect(section.locator("details")).to_have_attribute("open", "")
    text = part(page, "bus").get_by_role("textbox")
    text.fill("not sent yet")
    page.locator("h1").click()
    with page.expect_response("**/patterns/"):
        page.clock.run_for(2500)
    expect(text).to_have_value("not sent yet")
    page.keyboard.press("p")
    asked.clear()
    page.clock.run_for(10_000)
    assert "/patterns/" not in asked
    page.keyboard.press("p")
    with page.expect_request("**/patterns/"):
        page.clock.run_for(2500)


def test_a_lock_is_taken_in_one_browser_and_seen_and_refused_in_another(page, as_):
    other = as_("operator", "bob")
    for one in (page, other):
        one.goto("/patterns/#locks")
    press(page, "locks", "Acquire (Ann)", "Ann acquired the lock")
    expect(part(other, "locks")).to_contain_text("Ann, played by alice")
    press(other, "locks", "Acquire (Ben)", "held by Ann, played by alice")
    expect(other.locator(".toast")).to_contain_text("SB485")
    press(page, "locks", "Release (Ann)", "Ann released the lock")
    press(other, "locks", "Acquire (Ben)", "Ben acquired the lock")
    expect(part(page, "locks")).to_contain_text("Ben, played by bob")


def test_clicks_wait_in_the_buffer_until_it_is_flushed_and_a_batch_whose_flusher_died_comes_again(page, engine):
    page.goto("/patterns/#write_buffer")
    section = part(page, "write_buffer")
    expect(section).to_contain_text("pending 0")
    press(page, "write_buffer", "Add 100 clicks", "100 clicks buffered")
    expect(section).to_contain_text("pending 3")
    press(page, "write_buffer", "Claim and crash", "its flusher crashed")
    expect(section).to_contain_text("in progress 2")
    press(page, "write_buffer", "Flush batch", "1 entry written")
    press(page, "write_buffer", "Flush batch", "SB482")  # the lease of the other two holds
