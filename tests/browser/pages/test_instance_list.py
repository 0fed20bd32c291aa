"""The list of instances in the browser: rows are selected, and the query line is completed by keyboard."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.browser.accessibility import squares
from tests.instances.bulks.builders import parcels


def test_all_rows_of_a_page_are_selected_by_one_box(as_, engine):
    parcels(engine, 4)
    page = as_("supervisor")
    page.goto("/machines/parcel/")
    suspend = page.get_by_role("button", name="Suspend…")
    expect(suspend).to_be_disabled()
    page.get_by_label("Select all on this page").check()
    expect(page.get_by_text("4 selected:")).to_be_visible()
    suspend.click()
    expect(page.get_by_text("4 chosen")).to_be_visible()


def test_the_query_line_is_completed_by_keyboard(as_, engine):
    parcels(engine, 1)
    page = as_("viewer")
    page.goto("/machines/parcel/")
    page.get_by_text("Find", exact=True).first.click()
    line = page.get_by_role("combobox", name="Query line")
    line.press_sequentially("state:op")
    option = page.get_by_role("option", name="state:open")
    expect(option).to_be_visible()
    assert squares(page, "[role=listbox]") == []
    line.press("ArrowDown")
    expect(option).to_have_attribute("aria-selected", "true")
    line.press("Enter")
    expect(line).to_have_value("state:open ")
    line.press("Escape")
    line.press("Enter")
    page.wait_for_url("**/machines/parcel/?state=open**")
