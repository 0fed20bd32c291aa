"""What lines mean, how a diagram fits its frame, and the map and the jump of a large one."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.diagrams.samples import flat_definition
from tests.pages.conftest import delivery, order, paying

from .conftest import is_live

__all__ = ["delivery", "order", "paying"]

MACHINE = "/machines/delivery/"
LONGEST = ["59 min", "100,000", "999.4M"]
OVER = """(texts) => [...document.querySelectorAll(".sb-diagram .state")].flatMap((state) => {
    const [count, name] = [".count", ".name"].map((which) => state.querySelector(`:scope > ${which}`));
    return texts.filter((text) => {
        count.textContent = text;
        return count.getBBox().x < name.getBBox().x + name.getBBox().width;
    }).map((text) => `${text} over ${state.dataset.state}`);
})"""
BOX = "#edge-box"
ROOM = """(frame) => { const svg = frame.querySelector("svg").getBoundingClientRect();
    return [svg.width <= frame.clientWidth, svg.height <= frame.clientHeight,
            document.body.scrollWidth <= innerWidth]; }"""

NEAR = """(frame) => [...frame.querySelectorAll(".node.state")].filter((part) => getComputedStyle(part).opacity === "1")
    .map(({ dataset }) => dataset.state)"""
INSIDE = """(part) => { const own = part.closest("[data-diagram]").getBoundingClientRect();
    const at = part.getBoundingClientRect();
    return at.left >= own.left && at.right <= own.right && at.top >= own.top && at.bottom <= own.bottom; }"""
VIEW = "(frame) => [frame.querySelector('svg').getBoundingClientRect().width, frame.scrollLeft, frame.scrollTop]"


@pytest.fixture
def large(page: Page, engine, db) -> Page:
    """The page of a machine of 60 states."""
    engine.publish(flat_definition(60))
    page.goto("/machines/flat/")
    is_live(page)
    return page


@pytest.mark.parametrize("font", ["", "DejaVu Sans"])
def test_no_figure_runs_into_the_name_of_its_state(page, order, font):
    page.goto(MACHINE)
    is_live(page)
    if font:
        page.evaluate("(font) => document.querySelector('.sb-diagram').style.setProperty('font-family', font)", font)
    assert page.evaluate(OVER, LONGEST) == []


def test_a_line_says_what_it_means_to_the_pointer_and_to_the_keys(page, order):
    page.goto(MACHINE)
    is_live(page)
    line = page.locator(".sb-diagram [data-source='On hold'][data-target='Cancelled']")
    line.locator(".event").hover()
    expect(page.locator(BOX)).to_contain_text("On hold → Cancelled")
    page.mouse.move(2, 2)
    expect(page.locator(BOX)).to_be_hidden()
    page.locator(".sb-diagram a.state[data-state='Packed']").focus()
    page.keyboard.press("l")
    expect(page.locator(BOX)).to_contain_text("Packed →")
    page.keyboard.press("Enter")
    expect(page.locator(f"{BOX} a")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.locator(BOX)).to_be_hidden()


def test_a_line_that_is_available_opens_its_action(page, order):
    page.goto(f"{MACHINE}instances/R-1/")
    is_live(page)
    page.locator(".sb-diagram a.possible[data-events='collect'] .event").click()
    focused = "document.activeElement.closest('.event-action')"
    assert page.evaluate(f"{focused}.querySelector('.event').textContent") == "collect"


@pytest.mark.parametrize("width", [1400, 1024])
def test_the_whole_width_is_seen_at_first_and_on_wide_pages_all_of_it(page, order, width):
    page.set_viewport_size({"width": width, "height": 900})
    page.goto(MACHINE)
    is_live(page)
    wide, high, inside = page.locator("[data-diagram]").evaluate(ROOM)
    assert wide
    assert inside
    assert high or width < 1400


def test_a_diagram_too_large_for_a_phone_begins_where_the_instance_is(page, order):
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(f"{MACHINE}instances/R-1/")
    is_live(page)
    frame = page.locator("[data-diagram]")
    assert frame.evaluate(ROOM)[2]
    middle = frame.evaluate("""(frame) => { const own = frame.getBoundingClientRect();
        const lit = [...frame.querySelectorAll(".node.current")].map((part) => part.getBoundingClientRect());
        return lit.some((part) => part.right > own.left && part.left < own.right); }""")
    assert middle


def test_a_large_diagram_has_a_map_that_moves_it(large):
    minimap, frame = large.locator("[data-minimap]"), large.locator("[data-diagram]")
    expect(minimap).to_be_visible()
    expect(minimap.locator(".part")).to_have_count(60)
    minimap.scroll_into_view_if_needed()
    at = minimap.bounding_box()
    large.mouse.move(at["x"] + at["width"] / 2, at["y"] + 5)
    large.mouse.down()
    large.mouse.move(at["x"] + at["width"] / 2, at["y"] + at["height"] - 5, steps=4)
    large.mouse.up()
    below = frame.evaluate("(frame) => frame.scrollTop")
    assert below > 300
    minimap.press("ArrowUp")
    large.wait_for_function("(below) => document.querySelector('[data-diagram]').scrollTop < below", arg=below)


def test_a_name_or_a_part_of_it_leads_to_a_state(large):
    name = list(flat_definition(60)["states"])[48]
    large.get_by_label("Jump to a state").fill(name[:-1].upper() + name[-1])
    large.keyboard.press("Enter")
    state = large.locator(f".sb-diagram [data-state='{name}']")
    expect(state).to_be_focused()
    expect(state).to_be_in_viewport()


def test_focus_shows_a_state_with_its_neighbours_until_escape(large):
    names = list(flat_definition(60)["states"])
    frame, button = large.locator("[data-diagram]"), large.get_by_role("button", name="Focus")
    before = frame.evaluate(VIEW)
    large.locator(f".sb-diagram a.state[data-state='{names[20]}']").focus()
    large.keyboard.press("f")
    expect(button).to_have_attribute("aria-pressed", "true")
    assert {names[19], names[20], names[21]} <= set(frame.evaluate(NEAR)) < set(names)
    large.locator(f".sb-diagram a.state[data-state='{names[21]}']").click()
    expect(button).to_have_accessible_name(f"Focus: {names[21]}")
    assert names[22] in frame.evaluate(NEAR)
    assert large.url.endswith("/flat/")
    large.keyboard.press("Escape")
    expect(button).to_have_attribute("aria-pressed", "false")
    assert frame.evaluate(NEAR) == names
    assert frame.evaluate(VIEW)[0] == before[0]
    button.click()
    expect(button).to_have_accessible_name(f"Focus: {names[21]}")


@pytest.mark.parametrize("width", [1280, 390])
def test_a_large_diagram_begins_at_its_initial_state_in_letters_that_can_be_read(large, width):
    large.set_viewport_size({"width": width, "height": 844})
    large.reload()
    is_live(large)
    first = large.locator(".sb-diagram .state.initial .name")
    assert first.evaluate("(name) => 14 * name.getScreenCTM().a") >= 9
    expect(large.locator("[data-minimap]")).to_be_visible()
    large.locator("[data-diagram]").scroll_into_view_if_needed()
    assert first.evaluate(INSIDE)


def test_lines_show_their_counts_alone_where_their_labels_cannot_be_read(page, order):
    page.goto(MACHINE)
    is_live(page)
    label = page.locator(".sb-diagram .edge .event").first
    shown = "(part) => getComputedStyle(part).visibility"
    page.locator("[data-diagram]").focus()
    page.keyboard.press("1")
    assert label.evaluate(shown) == "visible"
    for _ in range(6):
        page.keyboard.press("-")
    assert label.evaluate(shown) == "hidden"
    assert page.locator(".sb-diagram .edge .flow").first.evaluate(shown) == "visible"
    assert page.locator(".sb-diagram .node text").first.evaluate(shown) == "visible"
    page.keyboard.press("1")
    assert label.evaluate(shown) == "visible"


def test_a_line_of_several_transitions_counts_them_all_and_lists_each(page, engine, db):
    ways = {f"pay_by_{way}": {"target": "Paid"} for way in ("card", "transfer", "invoice", "voucher")}
    states = {"Open": {"on": ways}, "Paid": {"on": {"reopen": "Open"}}}
    engine.publish({"id": "till", "initial": "Open", "states": states})
    engine.create("till", "T-1", {})
    page.goto("/machines/till/")
    is_live(page)
    line = page.locator(".sb-diagram [data-source='Open'].transition")
    expect(line).to_have_count(1)
    expect(line.locator(".event")).to_contain_text("pay_by_card +3")
    for event in ("pay_by_card", "reopen", "pay_by_invoice"):
        engine.fire("till", "T-1", event)
    expect(line.locator(".flow")).to_have_text("2")
    line.locator(".event").click()
    expect(page.locator(f"{BOX} b")).to_have_text("4 transitions: Open → Paid")
    expect(page.locator(f"{BOX} p")).to_have_text([f"t{n}: {way}" for n, way in enumerate(ways, 1)])
    expect(page.locator(f"{BOX} a")).to_have_text("Instances in its target")
    engine.publish({"id": "till", "initial": "Open", "states": states, "index": ["instance.transition"]})
    engine.create("till", "T-2", {})
    engine.fire("till", "T-2", "pay_by_transfer")
    page.goto("/machines/till/?version=2")
    line.locator(".event").click()
    with page.expect_navigation():
        page.locator(f"{BOX} p a", has_text="pay_by_transfer").click()
    expect(page.locator("tr[data-row]")).to_have_text(re.compile("T-2"))


def test_groups_of_a_large_machine_count_live_and_open_by_a_click(large, engine):
    initial = flat_definition(60)["initial"]
    large.locator("[data-view]", has_text="Groups").click()
    expect(large).to_have_url(re.compile(r"/machines/flat/\?view=groups$"))
    group = large.locator(f".sb-diagram .state[data-state='{initial.split()[0].lower()} *']")
    expect(group.locator(".count")).to_have_text("0")
    engine.create("flat", "F-1")
    expect(group.locator(".count")).to_have_text("1")
    expect(large.locator(".sb-diagram .state")).to_have_count(8)
    group.locator(".name").click()
    expect(large.locator(f".sb-diagram .state[data-state='{initial}'] .count")).to_have_text("1")
    large.locator("[data-view]", has_text="All states").click()
    expect(large.locator(".sb-diagram .state")).to_have_count(60)


def test_a_small_diagram_has_no_map(page, order):
    page.goto(MACHINE)
    expect(page.locator("[data-minimap], [data-jump]")).to_have_count(0)
