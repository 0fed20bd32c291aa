"""The Patterns page in a browser: poked in place, renewed by itself, and left alone under a hand."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from dashboard.examples.patterns import throttle as limited
from machines.patterns import Throttle
from tests.browser.conftest import keys_work


@pytest.fixture
def patterns(page: Page) -> Page:
    page.goto("/patterns/")
    return page


def part(page: Page, name: str):
    return page.locator(f"#{name}")


def told(page: Page, name: str):
    return part(page, name).get_by_role("status")


def test_the_throttle_is_hit_in_place_until_it_refuses(patterns, engine):
    button = part(patterns, "throttle").get_by_role("button", name="Send steady rate")
    for left in range(limited.LIMIT - 1, -1, -1):
        button.click()
        expect(told(patterns, "throttle")).to_contain_text(f"Allowed: 1 used, {left} remaining")
        expect(button).to_be_focused()
    part(patterns, "throttle").get_by_role("combobox").first.select_option("2")
    button.click()
    expect(told(patterns, "throttle")).to_contain_text("Refused: retry in")
    expect(part(patterns, "throttle").get_by_role("combobox").first).to_have_value("2")
    expect(patterns).to_have_url("/patterns/")


def test_a_section_renews_itself_unless_somebody_reads_there_or_pauses(page, engine, prefix):
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url.partition("/patterns/")[2]))
    page.clock.install()
    page.goto("/patterns/#throttle")
    section = part(page, "throttle")
    keys_work(page)
    Throttle(engine.client, prefix).take(limited.NAME, limited.KEY, limit=limited.LIMIT, per=3600)
    page.clock.run_for(2500)
    expect(section.locator(".standing")).to_contain_text("demo.hits")
    for stop, go in (
        (
            lambda: section.get_by_text("Example", exact=True).click(),
            lambda: section.get_by_text("Example", exact=True).click(),
        ),
        (lambda: page.keyboard.press("p"), lambda: page.keyboard.press("p")),
    ):
        stop()
        asked.clear()
        page.clock.run_for(10_000)
        assert "throttle/" not in asked
        go()
        with page.expect_request("**/patterns/throttle/"):
            page.clock.run_for(2500)


def test_a_lock_is_taken_in_one_browser_and_seen_and_refused_in_another(page, as_):
    other = as_("operator", "bob")
    for one in (page, other):
        one.goto("/patterns/#locks")
    part(page, "locks").get_by_role("button", name="Acquire as Ann").click()
    expect(told(page, "locks")).to_contain_text("Ann acquired the lock")
    expect(part(other, "locks")).to_contain_text("Ann, played by alice")
    part(other, "locks").get_by_role("button", name="Acquire as Ben").click()
    expect(told(other, "locks")).to_contain_text("held by Ann, played by alice")
    expect(told(other, "locks")).to_contain_text("SB485")
    part(page, "locks").get_by_role("button", name="Release").first.click()
    expect(told(page, "locks")).to_contain_text("Ann released the lock")
    part(other, "locks").get_by_role("button", name="Acquire as Ben").click()
    expect(told(other, "locks")).to_contain_text("Ben acquired the lock")
    expect(part(page, "locks")).to_contain_text("Ben, played by bob")


def test_clicks_wait_in_the_buffer_until_it_is_flushed_and_a_batch_whose_flusher_died_comes_again(page, engine):
    page.goto("/patterns/#write_buffer")
    section = part(page, "write_buffer")
    expect(section).to_contain_text("pending 0")
    section.get_by_role("button", name="Add 100 clicks").click()
    expect(section).to_contain_text("pending 3")
    section.get_by_role("button", name="Claim and crash").click()
    expect(told(page, "write_buffer")).to_contain_text("its flusher crashed")
    expect(section).to_contain_text("in progress 2")
    section.get_by_role("button", name="Flush batch").click()
    expect(told(page, "write_buffer")).to_contain_text("1 entry written")
    section.get_by_role("button", name="Flush batch").click()
    expect(told(page, "write_buffer")).to_contain_text("SB482")  # the other two are somebody's until his time is over
