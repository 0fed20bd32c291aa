"""Drawing in the Studio's diagram: states and transitions are added, renamed, filled and deleted; undo is that of the
text, and the keyboard does all of it."""

from __future__ import annotations

import json

from playwright.sync_api import Locator, Page, expect

from tests.browser.accessibility import violations
from tests.browser.pages.test_studio import LAMP, lamp, studio, text_of

__all__ = ["lamp", "studio"]  # fixtures
TEXT = json.dumps(LAMP, indent=2, ensure_ascii=False) + "\n"


def state(page: Page, name: str) -> Locator:
    return page.locator(f'.picture .state[data-state="{name}"]')


def test_a_double_click_on_the_ground_adds_a_state_and_undo_takes_it_back(studio: Page):
    studio.locator(".picture .diagram").dblclick(position={"x": 5, "y": 5})
    studio.get_by_label("name").and_(studio.locator(".draw input")).fill("dim")
    studio.keyboard.press("Enter")
    expect(state(studio, "dim")).to_be_focused()
    assert text_of(studio) == TEXT.replace("      }\n    }\n  }\n}\n", '      }\n    },\n    "dim": {}\n  }\n}\n')
    studio.keyboard.press("ControlOrMeta+z")
    expect(state(studio, "dim")).to_have_count(0)
    assert text_of(studio) == TEXT


def drag(page: Page, handle: Locator, target: Locator) -> None:
    start, end = handle.bounding_box(), target.bounding_box()
    page.mouse.move(start["x"] + start["width"] / 2, start["y"] + start["height"] / 2)
    page.mouse.down()
    page.mouse.move(end["x"] + end["width"] / 2, end["y"] + end["height"] / 2, steps=4)
    expect(page.locator(".picture .drawn")).to_have_count(1)
    page.mouse.up()


def test_a_handle_is_dragged_to_another_state(studio: Page):
    state(studio, "off").hover()
    drag(studio, state(studio, "off").locator(".handle:not(.grip)"), state(studio, "on"))
    expect(studio.locator(".draw h2")).to_have_text("off → on")
    studio.locator(".draw input").fill("flash")
    studio.keyboard.press("Enter")
    expect(studio.locator('.picture .transition[data-events="flash"]')).to_have_count(1)
    assert json.loads(text_of(studio))["states"]["off"]["on"]["flash"] == "on"
    expect(studio.locator(".picture .drawn")).to_have_count(0)


def test_a_state_is_dropped_into_another_after_a_list_of_what_that_changes(studio: Page):
    state(studio, "on").hover()
    drag(studio, state(studio, "on").locator(".grip"), state(studio, "off"))
    listed = studio.locator(".draw li")
    expect(listed).to_have_text(["Transitions of off also hold in on: press."])
    assert violations(studio) == []
    studio.get_by_role("button", name="Move", exact=True).click()
    expect(studio.locator(".picture .cluster[data-state=off] > .plate")).to_have_count(1)
    off = json.loads(text_of(studio))["states"]["off"]
    assert (off["initial"], off["states"]) == ("on", {"on": LAMP["states"]["on"]})
    moved = text_of(studio)
    state(studio, "on").hover()
    drag(
        studio,
        state(studio, "on").locator(".grip"),
        state(studio, "off").locator(":scope > .name, :scope > text").first,
    )
    expect(studio.locator(".draw")).to_contain_text("on is in off already.")
    studio.keyboard.press("Escape")
    assert text_of(studio) == moved
    studio.locator(".picture .diagram").focus()
    studio.keyboard.press("ControlOrMeta+z")
    expect(studio.locator(".picture .cluster[data-state=off]")).to_have_count(0)
    assert text_of(studio) == TEXT


def test_keys_alone_move_a_state_in_and_out(studio: Page):
    state(studio, "on").focus()
    studio.keyboard.press("ContextMenu")
    studio.get_by_role("button", name="Move into").press("Enter")
    studio.get_by_label("into").select_option("off")
    studio.keyboard.press("Enter")
    expect(studio.get_by_role("heading", name="Move on?")).to_be_visible()
    studio.get_by_role("button", name="Move", exact=True).press("Enter")
    expect(state(studio, "on")).to_be_focused()
    assert "on" in json.loads(text_of(studio))["states"]["off"]["states"]
    studio.keyboard.press("ContextMenu")
    studio.get_by_role("button", name="Move into").press("Enter")
    studio.get_by_label("into").select_option(label="the machine itself")
    studio.keyboard.press("Enter")
    expect(studio.get_by_role("heading", name="Move on?")).to_be_visible()
    studio.get_by_role("button", name="Move", exact=True).press("Enter")
    expect(studio.locator(".picture .cluster[data-state=off]")).to_have_count(0)
    assert text_of(studio) == TEXT


def test_keys_alone_add_rename_and_delete(studio: Page):
    state(studio, "off").focus()
    studio.keyboard.press("ContextMenu")
    expect(studio.get_by_role("button", name="Rename")).to_be_focused()
    studio.keyboard.press("ArrowDown")
    studio.keyboard.press("Enter")
    studio.keyboard.type("after 30s")
    studio.get_by_label("to").select_option("on")
    studio.keyboard.press("Enter")
    expect(state(studio, "off")).to_be_focused()
    assert json.loads(text_of(studio))["states"]["off"]["after"] == {"30s": "on"}
    studio.keyboard.press("F2")
    studio.keyboard.type("dark")
    studio.keyboard.press("Enter")
    expect(state(studio, "dark")).to_be_focused()
    made = json.loads(text_of(studio))
    assert (made["initial"], made["states"]["on"]["on"]) == ("dark", {"press": "dark"})
    state(studio, "on").focus()
    studio.keyboard.press("Delete")
    listed = studio.locator(".draw li")
    expect(listed.first).to_have_text("The transition states.dark.on.press to on goes too.")
    studio.keyboard.press("Enter")
    expect(state(studio, "on")).to_have_count(0)
    assert list(json.loads(text_of(studio))["states"]) == ["dark"]


def test_what_would_be_invalid_is_refused_and_the_text_stays(studio: Page):
    state(studio, "off").focus()
    studio.keyboard.press("Delete")
    expect(studio.locator(".draw")).to_contain_text("The machine would be invalid.")
    expect(studio.locator(".draw")).to_contain_text("initial")
    studio.keyboard.press("Escape")
    state(studio, "on").dblclick()
    studio.locator(".draw input").fill("off")
    studio.keyboard.press("Enter")
    expect(studio.locator(".draw [role=alert]")).to_have_text("There is a state off already.")
    assert violations(studio) == []
    assert text_of(studio) == TEXT


def test_the_form_of_a_state_fills_it(studio: Page):
    state(studio, "on").click()
    form = studio.get_by_role("tabpanel", name="State").locator("form")
    expect(form.get_by_label("name")).to_have_value("on")
    form.get_by_label("entry").fill('[{"log": "\'lit\'"}]')
    form.get_by_label("name").fill("lit")
    form.get_by_role("button", name="Apply").click()
    expect(state(studio, "lit")).to_have_count(1)
    expect(form.get_by_label("entry")).to_have_value('[\n  {\n    "log": "\'lit\'"\n  }\n]')
    form.get_by_label("exit").fill("[{")
    form.get_by_role("button", name="Apply").click()
    expect(form.get_by_role("alert")).to_contain_text("exit is not JSON")
    assert violations(studio) == []
    made = json.loads(text_of(studio))["states"]
    assert made["lit"] == {"on": {"press": "off"}, "entry": [{"log": "'lit'"}]}
    assert made["off"]["on"]["press"]["target"] == "lit"
