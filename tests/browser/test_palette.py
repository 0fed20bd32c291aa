"""The palette: any instance in two actions from anywhere, by keyboard, by the search icon, read out as a combobox."""

from __future__ import annotations

import re

from playwright.sync_api import expect

from .accessibility import violations
from .conftest import keys_work


def test_an_instance_is_two_actions_away(page, waiting):
    page.goto("/queues/")
    keys_work(page)
    page.get_by_role("link", name="Machines").first.focus()
    page.keyboard.press("Control+k")
    field = page.get_by_role("combobox", name="Go to a machine")
    expect(field).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog", name="Palette")).to_be_hidden()
    expect(page.get_by_role("link", name="Machines").first).to_be_focused()
    page.keyboard.press("Control+k")
    page.keyboard.type(waiting.id)
    expect(page.get_by_role("option", selected=True)).to_contain_text("instance of activation")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("/machines/activation/instances/ATV-123:NBCSports/$"))


def test_arrows_choose_and_actions_of_the_page_are_offered(page, waiting):
    page.goto("/workers/")
    keys_work(page)
    page.keyboard.press("Control+k")
    page.keyboard.type("acti")
    options = page.get_by_role("option")
    expect(options.first).to_contain_text("activation")
    field = page.get_by_role("combobox", name="Go to a machine")
    expect(field).to_have_attribute("aria-activedescendant", "palette-0")
    page.keyboard.press("ArrowUp")
    expect(options.last).to_have_attribute("aria-selected", "true")
    page.keyboard.press("ArrowDown")
    expect(options.first).to_have_attribute("aria-selected", "true")
    assert violations(page) == []
    field.fill("keyboard")
    expect(options).to_have_count(1)
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog", name="Keyboard shortcuts")).to_be_visible()


def test_on_a_phone_the_search_icon_opens_it(as_, waiting):
    page = as_("operator", viewport={"width": 390, "height": 844})
    page.goto("/machines/activation/")
    expect(page.locator("[data-live-text]")).to_have_text("Live")
    page.get_by_role("link", name="Search", exact=True).click()
    page.get_by_role("combobox", name="Go to a machine").fill("queu")
    page.get_by_role("option", name="Queues").click()
    expect(page).to_have_url(re.compile("/queues/$"))


def test_without_script_the_icon_leads_to_the_search_page(as_, waiting):
    page = as_("operator", viewport={"width": 390, "height": 844}, java_script_enabled=False)
    page.goto("/")
    page.get_by_role("link", name="Search", exact=True).click()
    expect(page.get_by_role("heading", name="Search")).to_be_visible()


def test_words_come_after_the_names(page, engine, db):
    engine.publish({"id": "ledger", "initial": "A", "context": {"customer": ""}, "states": {"A": {}}})
    engine.create("ledger", "one", {"customer": "Acme of old"})
    page.goto("/queues/")
    keys_work(page)
    page.keyboard.press("Control+k")
    page.keyboard.type("of old")
    option = page.get_by_role("option", selected=True)
    expect(option).to_contain_text("instance of ledger: data customer")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("/machines/ledger/instances/one/$"))


def test_an_action_opens_the_form_that_asks_for_the_reason(as_, engine, db):
    page = as_("supervisor")
    engine.publish({"id": "cash", "initial": "A", "states": {"A": {"invoke": {"src": "pay"}}}})
    engine.create("cash", "one")
    engine.fail(engine.take("cash", "pay", worker="w")[0], "no", retry=False)
    for typed, form in [("retry dead", "form.narrowing"), ("pause pay", "#act-pause-sheet")]:
        page.goto("/workers/")
        keys_work(page)
        page.keyboard.press("Control+k")
        page.keyboard.type(typed)
        expect(page.get_by_role("option", selected=True)).to_contain_text("queue pay of cash")
        page.keyboard.press("Enter")
        expect(page.locator(form)).to_be_visible()
