"""Toasts do not push the page, wait for their reader, and can be reached by the keyboard; popovers take the focus."""

from __future__ import annotations

from playwright.sync_api import expect

TOP = "() => document.querySelector('main .head').getBoundingClientRect().top"
SAY = """async ([text, level]) => {
    const { toast } = await import("/static/signalbox/js/shared/toasts.js");
    toast(text, { level, action: { label: "Undo", run: () => { document.title = "undone"; } } });
}"""


def save(page) -> None:
    page.goto("/account/")
    page.get_by_role("button", name="Save").click()


def test_a_message_lies_over_the_page_and_leaves_by_itself_but_not_under_the_pointer(page, waiting):
    page.clock.install()
    page.goto("/account/")
    before = page.evaluate(TOP)
    page.get_by_role("button", name="Save").click()
    message = page.get_by_role("status").filter(has_text="Settings saved")
    expect(message).to_be_visible()
    assert page.evaluate(TOP) == before
    message.hover()
    page.clock.run_for(60_000)
    expect(message).to_be_visible()
    page.mouse.move(5, 5)
    page.clock.run_for(60_000)
    expect(message).to_have_count(0)


def test_an_error_stays_until_it_is_closed_by_the_keyboard(page, waiting):
    page.goto("/account/")
    page.clock.install()
    page.evaluate(SAY, ["Refused", "stop"])
    error = page.get_by_role("alert")
    page.clock.run_for(600_000)
    expect(error).to_contain_text("Refused")
    error.get_by_role("button", name="Undo").focus()
    page.keyboard.press("Enter")
    expect(page).to_have_title("undone")
    page.keyboard.press("Tab")
    expect(error.get_by_role("button", name="Close message")).to_be_focused()
    page.keyboard.press("Enter")
    expect(error).to_have_count(0)


def test_without_script_it_stands_above_the_content(as_, waiting):
    page = as_("operator", java_script_enabled=False)
    save(page)
    message = page.locator(".toast")
    expect(message).to_contain_text("Settings saved")
    assert (
        message.bounding_box()["y"] + message.bounding_box()["height"] <= page.locator("main .head").bounding_box()["y"]
    )
    expect(message.get_by_role("button")).to_have_count(0)


def test_what_is_opened_takes_the_focus_into_its_first_field_and_gives_it_back(as_, engine, devices):
    page = as_("supervisor", "sue")
    page.goto("/queues/new_device/todo/")
    opener = page.get_by_role("button", name="Pause queue…")
    opener.click()
    expect(page.locator(".sheet:popover-open :focus")).to_have_attribute("name", "reason")
    page.keyboard.press("Escape")
    expect(opener).to_be_focused()
    page.goto("/machines/new_device/#create")
    expect(page.locator("#create[open] :focus")).to_have_count(1)
