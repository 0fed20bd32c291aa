"""A list that stays put while instances move, figures that follow a search, and a mistake in the line of a search."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.browser.conftest import is_live

TOKEN = {"token": "MTOB1J"}


def test_rows_stay_and_say_where_to_and_new_ones_wait_to_be_asked_for(page, engine, activation):
    for number in range(4):
        engine.create(activation, f"d{number}")
    page.goto("/machines/activation/?state=New")
    is_live(page)
    rows = page.locator("tr[data-row]")
    expect(rows).to_have_count(4)
    engine.fire(activation, "d1", "activate", TOKEN)
    engine.delete(activation, "d2")
    engine.create(activation, "d4")
    engine.create(activation, "d5")
    expect(rows.nth(1)).to_contain_text("moved to Waiting")
    expect(rows.nth(2)).to_contain_text("deleted")
    expect(page.locator("[data-fresh]")).to_have_text("2 new")
    assert page.locator("[data-fresh]").get_attribute("aria-live") == "polite"
    assert [row.get_attribute("data-row") for row in rows.all()] == ["d0", "d1", "d2", "d3"]
    page.locator("[data-fresh] a").click()
    expect(rows).to_have_count(4)
    expect(rows.last).to_have_attribute("data-row", "d5")
    expect(page.locator("[data-fresh]")).to_have_text("")


def test_figures_follow_a_search_and_views_are_kept(page, engine, activation):
    for number in range(3):
        engine.create(activation, f"d{number}", actor=("anna", "bert")[number % 2])
    page.goto("/machines/activation/")
    page.locator(".narrower summary").first.click()
    page.get_by_role("textbox", name="last actor").fill("anna")
    page.get_by_role("search", name="Find instances").get_by_role("button", name="Find").click()
    is_live(page)
    tab = page.locator(".tabs [data-state='New'] [data-count]")
    drawn = page.locator(".sb-diagram [data-state='New'] .count")
    for place in (tab, drawn, page.locator("tr[data-state='New'] [data-count]")):
        expect(place).to_have_text("2")
    engine.create(activation, "d8", actor="bert")
    engine.create(activation, "d9", actor="anna")
    for place in (tab, drawn, page.locator(".narrower [data-found]")):
        expect(place).to_have_text("3")
    expect(page.locator(".facts [data-total]")).to_have_text("5")
    page.get_by_label("Name of the view").fill("anna's")
    with page.expect_navigation():
        page.get_by_role("button", name="Save view").click()
    page.goto("/machines/activation/")
    page.locator(".narrower summary").first.click()
    page.get_by_role("link", name="anna's").click()
    expect(page.locator("tr[data-row]")).to_have_count(3)
    page.get_by_role("link", name="Remove filter actor anna").click()
    expect(page.locator("tr[data-row]")).to_have_count(5)


def test_a_mistake_in_the_line_is_in_view_and_the_line_has_the_focus(as_, engine, activation):
    page = as_("operator", viewport={"width": 390, "height": 844})
    page.goto("/machines/activation/?query=state:")
    line = page.get_by_role("combobox", name="Query line")
    expect(line).to_be_focused()
    expect(line).to_have_value("state:")
    mistake = page.get_by_role("alert").filter(has_text="value is missing")
    expect(mistake).to_be_in_viewport()
