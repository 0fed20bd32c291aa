"""What an operator does from end to end: find what is wrong, understand it, repair it, prove who did it."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from tests.pages.conftest import example

from .conftest import keys_work, log_in

INSTANCE = "/machines/activation/instances/ATV-123:NBCSports/"


@pytest.fixture
def two_needed(engine, db) -> str:
    """The activation machine, where forcing needs a second person; ATV-9 stands in New. Its name."""
    name = engine.publish(example("activation") | {"approval": ["force"]}).name
    engine.create(name, "ATV-9")
    return name


def test_what_is_wrong_is_found_understood_repaired_and_proved(as_, engine, waiting):
    page = as_("supervisor", "sue")
    page.goto("/")
    keys_work(page)
    page.keyboard.press("/")
    page.keyboard.type(waiting.id)
    page.keyboard.press("Enter")
    expect(page.locator("div.head .lit")).to_have_text("Waiting")

    page.locator("summary", has_text="Repairs").click()
    page.get_by_role("link", name="Force", exact=False).first.click()
    page.get_by_label("state", exact=True).select_option("Active")
    page.get_by_role("button", name="Preview").click()
    expect(page.locator(".preview-panel")).to_contain_text("Active")
    assert engine.get("activation", waiting.id).state == "Waiting"
    page.get_by_label("reason").fill("the customer proved it by phone")
    page.get_by_role("button", name="Force", exact=False).last.click()
    expect(page).to_have_url(re.compile(f"{re.escape(INSTANCE)}$"))
    expect(page.locator("div.head .lit")).to_have_text("Active")
    expect(page.locator("table.steps tbody tr").first).to_contain_text("the customer proved it by phone")

    keys_work(page)
    page.keyboard.type("gu")
    entry = page.locator("table.entries tbody tr").first
    expect(entry).to_contain_text("sue")
    expect(entry).to_contain_text("forced the state Active")
    expect(entry).to_contain_text("the customer proved it by phone")
    expect(entry).to_contain_text("done")


def test_what_needs_two_is_asked_by_one_and_done_once_another_approves(as_, engine, two_needed):
    sue = as_("supervisor", "sue")
    sue.goto(f"/machines/{two_needed}/instances/ATV-9/force/")
    expect(sue.locator("main")).to_contain_text("Needs approval")
    sue.get_by_label("state", exact=True).select_option("Active")
    sue.get_by_role("button", name="Preview").click()
    sue.get_by_label("reason").fill("a test device")
    sue.get_by_role("button", name="Request approval").click()
    expect(sue.get_by_role("heading", level=1)).to_contain_text("Force state")
    expect(sue.get_by_role("button", name="Approve")).to_have_count(0)
    assert engine.get(two_needed, "ATV-9").state == "New"

    otto = as_("supervisor", "otto")
    otto.goto("/")
    expect(otto.get_by_role("navigation", name="Main")).to_contain_text("1 waiting")
    keys_work(otto)
    otto.keyboard.type("ga")
    otto.get_by_role("link", name="Review", exact=True).click()
    expect(otto.locator("main")).to_contain_text("a test device")
    otto.get_by_role("button", name="Approve and run").click()
    expect(otto.locator("main")).to_contain_text("otto")
    assert engine.get(two_needed, "ATV-9").state == "Active"
    otto.goto("/audit/")
    for words in ("otto approved request", "sue filed request"):
        expect(otto.locator("table.entries")).to_contain_text(words)


def test_a_click_on_the_diagram_narrows_the_list_and_a_view_of_it_is_kept(as_, engine, waiting):
    engine.create("activation", "one")
    page = as_("operator", "alice")
    page.goto("/machines/activation/")
    rows = page.locator("table.instances tbody tr")
    expect(rows).to_have_count(2)
    page.locator(".sb-diagram a[data-state='Waiting']").click()
    expect(page).to_have_url(re.compile(r"\?state=Waiting"))
    expect(rows).to_have_count(1)
    page.locator("summary", has_text="Find").click()
    page.get_by_label("Name of the view").fill("those who wait")
    with page.expect_navigation():
        page.get_by_role("button", name="Save view").click()
    page.goto("/account/")
    page.get_by_role("link", name="those who wait").click()
    expect(page).to_have_url(re.compile(r"/machines/activation/\?state=Waiting"))
    expect(rows).to_have_count(1)
    keys_work(page)
    page.keyboard.type("gy")
    page.get_by_label("time zone").select_option("Asia/Kolkata")
    page.get_by_role("button", name="Save").click()
    expect(page.locator(".foot")).to_contain_text("UTC+5:30")


def test_the_browsers_zone_is_offered_once(browser, user_of, activation):
    user_of("viewer", "vera")
    page = browser(timezone_id="Asia/Tokyo").new_page()
    log_in(page, "vera")
    page.goto("/queues/")
    page.get_by_role("button", name="Use Asia/Tokyo").click()
    expect(page).to_have_url(re.compile("/queues/$"))
    expect(page.locator(".foot")).to_contain_text("UTC+9")
    expect(page.get_by_role("form", name="Time zone")).to_have_count(0)
