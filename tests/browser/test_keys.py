"""The keyboard: keys that go places, walk through lists, search, and are listed where anybody finds them."""

from __future__ import annotations

import re

import pytest
from django.contrib.auth import get_user_model
from playwright.sync_api import expect

from dashboard.models import Preferences

from .conftest import is_live, keys_work

# Each topic of the page has its first value.
OPENED = """async () => {
    const { connect } = await import("/static/signalbox/js/live/client.js");
    const { store } = connect();
    return store.topics.length > 0 && store.topics.every((topic) => store.value(topic) !== null);
}"""
INSTANCE = "/machines/activation/instances/ATV-123:NBCSports/"


def test_the_question_mark_lists_the_keys_and_escape_gives_the_focus_back(page, waiting):
    page.goto(INSTANCE)
    expect(page.get_by_role("button", name="Keyboard shortcuts")).to_be_visible()
    page.get_by_role("link", name="Queues").first.focus()
    page.keyboard.press("?")
    dialog = page.get_by_role("dialog", name="Keyboard shortcuts")
    expect(dialog).to_be_visible()
    expect(dialog.get_by_role("button", name="Close")).to_be_focused()
    expect(dialog).to_contain_text("Machine of this page")
    assert dialog.locator("dt").count() == dialog.locator("dd").count() >= 10
    expect(dialog).not_to_contain_text("Audit")  # an operator has no such page
    page.keyboard.press("j")
    expect(dialog.get_by_role("button", name="Close")).to_be_focused()
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    expect(page.get_by_role("link", name="Queues").first).to_be_focused()
    page.get_by_role("button", name="Keyboard shortcuts").click()
    expect(dialog).to_be_visible()
    page.keyboard.press("Enter")
    expect(dialog).to_be_hidden()


def test_g_and_a_letter_go_to_a_page(as_, waiting):
    page = as_("supervisor", "sue")
    page.goto(INSTANCE)
    for keys, address in [
        ("gm", "/machines/activation/"), ("gq", "/queues/"), ("gw", "/workers/"), ("ga", "/approvals/"),
        ("gu", "/audit/"), ("gh", "/webhooks/"), ("gs", "/schedules/"), ("gp", "/patterns/"),
        ("gy", "/account/"), ("go", "/"),
    ]:  # fmt: skip
        page.keyboard.type(keys)
        expect(page).to_have_url(re.compile(f"^http://[^/]+{address}$"))
        keys_work(page)
    page.keyboard.type("gx")
    page.keyboard.type("q")
    expect(page).to_have_url(re.compile("/$"))


def test_a_slash_searches_for_everything_there_is(page, waiting):
    page.goto("/workers/")
    page.keyboard.press("/")
    box = page.get_by_role("searchbox", name="Search instances")
    expect(box).to_be_focused()
    page.keyboard.press("Escape")
    expect(box).not_to_be_focused()
    page.keyboard.press("/")
    page.keyboard.type("activat")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Search")).to_be_visible()
    keys_work(page)
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("/machines/activation/$"))
    keys_work(page)
    page.keyboard.press("/")
    page.keyboard.type(waiting.id)
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(f"{re.escape(INSTANCE)}$"))


def test_j_and_k_walk_through_the_rows_and_enter_opens_one(page, engine, activation):
    for name in ("one", "two", "three"):
        engine.create(activation, name)
    page.goto("/machines/activation/?state=New")
    links = page.locator("table.instances tbody th a")
    expect(links).to_have_count(3)
    while page.evaluate("!document.activeElement.closest('table.instances')"):
        page.keyboard.press("j")
    expect(links.nth(0)).to_be_focused()
    page.keyboard.type("jj")
    expect(links.nth(2)).to_be_focused()
    page.keyboard.press("k")
    name = links.nth(1).inner_text()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_contain_text(name)


def test_who_types_is_left_alone(page, waiting):
    page.goto(INSTANCE)
    field = page.get_by_label("token").first
    field.fill("")
    field.press_sequentially("/?pjkgo")
    expect(field).to_have_value("/?pjkgo")
    expect(page.locator("dialog")).to_have_count(0)
    field.blur()
    page.keyboard.press("Control+/")
    expect(page.locator("[data-search]")).not_to_be_focused()


@pytest.fixture
def without_keys(as_):
    page = as_("viewer", "vera")
    Preferences.objects.create(user=get_user_model().objects.get(username="vera"), keys=False)
    return page


def test_shortcuts_can_be_switched_off_and_the_button_still_lists_them(without_keys, waiting):
    page = without_keys
    page.goto("/")
    page.keyboard.type("?/gq")
    expect(page.locator("dialog")).to_have_count(0)
    expect(page).to_have_url(re.compile("/$"))
    page.get_by_role("button", name="Keyboard shortcuts").click()
    expect(page.get_by_role("dialog")).to_contain_text("turned off in your account")


def test_p_freezes_the_view_and_says_since_when_and_how_much_is_new(page, engine, waiting):
    page.goto("/machines/activation/")
    is_live(page)
    count = page.locator(".sb-diagram [data-state='New'] .count")
    page.keyboard.press("p")
    expect(page.locator("[data-live]")).to_have_attribute("data-state", "frozen")
    expect(page.locator("[data-live-notice]")).to_contain_text("Frozen")
    expect(page.locator("[data-live-text]")).to_have_text(re.compile(r"Frozen \d\d:\d\d:\d\d: nothing new"))
    expect(page.get_by_role("button", name="Unfreeze")).to_have_attribute("aria-pressed", "true")
    engine.create("activation", "new")
    page.reload()
    expect(count).to_have_text("1")
    expect(page.locator("[data-live]")).to_have_attribute("data-state", "frozen")
    expect(page.locator("html")).to_have_class("frozen")
    while not page.evaluate(OPENED):
        page.wait_for_timeout(20)
    engine.create("activation", "newer")
    other = page.context.new_page()
    other.goto("/machines/activation/")
    is_live(other)
    expect(other.locator(".sb-diagram [data-state='New'] .count")).to_have_text("2")
    expect(count).to_have_text("1")
    expect(page.locator("[data-live-text]")).to_have_text(re.compile(r"Frozen \d\d:\d\d:\d\d: \d+ new"))
    page.get_by_role("button", name="Unfreeze").click()
    expect(count).to_have_text("2")
    is_live(page)
    engine.create("activation", "newest")
    expect(count).to_have_text("3")
