"""The diagram zooms and pans, folds and unfolds, and stays live meanwhile."""

from __future__ import annotations

import re

import pytest
from django.contrib.auth import get_user_model
from playwright.sync_api import Page, Route, expect

from machines.catalog import publishing
from machines.models import Machine
from tests.pages.conftest import delivery, order, paying

from .conftest import is_live

__all__ = ["delivery", "order", "paying"]

MACHINE = "/machines/delivery/"
VIEWPORTS = [(1400, 1000), (1400, 2400), (2400, 500), (700, 900), (390, 844)]
INSTANCE = "/machines/delivery/instances/R-1/"
PLACE = """(frame) => { const own = frame.getBoundingClientRect();
    const svg = frame.querySelector("svg").getBoundingClientRect();
    return { width: svg.width, height: svg.height, left: frame.scrollLeft, top: frame.scrollTop,
             wide: frame.clientWidth, high: frame.clientHeight, x: own.x, y: own.y }; }"""


def place(page: Page) -> dict[str, float]:
    return page.locator("[data-diagram]").evaluate(PLACE)


def natural(page: Page) -> float:
    return page.evaluate("Number(document.querySelector('.sb-diagram').getAttribute('viewBox').split(' ')[2])")


def scale(page: Page) -> float:
    return place(page)["width"] / natural(page)


def scale_in(page: Page, wide: int, high: int) -> float:
    page.set_viewport_size({"width": wide, "height": high})
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    return scale(page)


@pytest.fixture
def open_page(page: Page, order) -> Page:
    """The machine's page, at rest."""
    page.goto(MACHINE)
    is_live(page)
    return page


def test_the_buttons_make_it_larger_and_smaller_and_tell_how_large(open_page):
    before = scale(open_page)
    open_page.get_by_role("button", name="Zoom in").click()
    assert scale(open_page) == pytest.approx(before * 1.25, rel=0.01)
    open_page.get_by_role("button", name="Actual size").click()
    assert scale(open_page) == pytest.approx(1, rel=0.01)
    expect(open_page.locator("[data-zoom-scale]")).to_have_text("100 %")
    open_page.get_by_role("button", name="Zoom out").click()
    expect(open_page.locator("[data-zoom-scale]")).to_have_text("80 %")


def test_fit_shows_all_of_it(open_page):
    open_page.get_by_role("button", name="Actual size").click()
    now = place(open_page)
    assert now["width"] > now["wide"]
    open_page.get_by_role("button", name="Fit").click()
    now = place(open_page)
    assert now["width"] <= now["wide"]
    assert now["height"] <= now["high"]


def test_its_shape_stays_the_same_at_any_size(open_page):
    for _ in range(3):
        open_page.get_by_role("button", name="Zoom in").click()
        now = place(open_page)
        shape = open_page.evaluate("document.querySelector('.sb-diagram').getAttribute('viewBox').split(' ').slice(2)")
        assert now["width"] / now["height"] == pytest.approx(float(shape[0]) / float(shape[1]), rel=0.01)


def test_keys_do_the_same(open_page):
    open_page.locator("[data-diagram]").focus()
    open_page.keyboard.press("1")
    assert scale(open_page) == pytest.approx(1, rel=0.01)
    open_page.keyboard.press("+")
    assert scale(open_page) == pytest.approx(1.25, rel=0.01)
    open_page.keyboard.press("-")
    assert scale(open_page) == pytest.approx(1, rel=0.01)
    open_page.keyboard.press("ArrowRight")
    open_page.wait_for_function("document.querySelector('[data-diagram]').scrollLeft > 0")
    open_page.keyboard.press("0")
    assert place(open_page)["width"] <= place(open_page)["wide"]


def test_the_wheel_with_control_zooms_around_the_pointer(open_page):
    open_page.get_by_role("button", name="Actual size").click()
    state = open_page.locator(".sb-diagram .node[data-state='Open']")
    state.scroll_into_view_if_needed()
    before = state.bounding_box()
    at = before["x"] + before["width"] / 2, before["y"] + before["height"] / 2
    open_page.mouse.move(*at)
    open_page.keyboard.down("Control")
    open_page.mouse.wheel(0, -60)
    open_page.keyboard.up("Control")
    open_page.wait_for_function("document.querySelector('[data-zoom-scale]').textContent !== '100 %'")
    after = state.bounding_box()
    assert after["width"] > before["width"] * 1.1
    middle = after["x"] + after["width"] / 2, after["y"] + after["height"] / 2
    assert middle == pytest.approx(at, abs=3)


def test_the_wheel_alone_scrolls_as_everywhere(open_page):
    before = scale(open_page)
    frame = place(open_page)
    open_page.mouse.move(frame["x"] + 200, frame["y"] + 200)
    open_page.mouse.wheel(0, 120)
    open_page.wait_for_timeout(200)
    assert scale(open_page) == before


def test_two_fingers_pinch_it(as_, order):
    page = as_("operator", "alice", viewport={"width": 390, "height": 844}, has_touch=True)
    page.goto(MACHINE)
    diagram = page.locator("[data-diagram]")
    diagram.evaluate("(frame) => frame.scrollIntoView({ block: 'start' })")
    before, frame = scale(page), diagram.bounding_box()
    x, y = frame["x"] + frame["width"] / 2, frame["y"] + 200
    client = page.context.new_cdp_session(page)
    for kind, apart in (("touchStart", 40), ("touchMove", 60), ("touchMove", 80), ("touchEnd", None)):
        points = [] if apart is None else [{"x": x - apart, "y": y}, {"x": x + apart, "y": y}]
        client.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
    assert scale(page) == pytest.approx(before * 2, rel=0.05)


def test_a_mouse_that_is_held_down_moves_it_and_follows_no_link(open_page):
    open_page.get_by_role("button", name="Actual size").click()
    state = open_page.locator(".sb-diagram .node[data-state='Open']")
    state.scroll_into_view_if_needed()
    before, box = place(open_page), state.bounding_box()
    at = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    open_page.mouse.move(*at)
    open_page.mouse.down()
    open_page.mouse.move(at[0] - 90, at[1] - 60, steps=4)
    open_page.mouse.up()
    after = place(open_page)
    assert (after["left"], after["top"]) == pytest.approx((before["left"] + 90, before["top"] + 60), abs=2)
    open_page.wait_for_timeout(200)
    expect(open_page).to_have_url(MACHINE)
    state.click()
    expect(open_page).to_have_url(f"{MACHINE}?state=Open#instances")


def test_the_top_level_is_one_click_away_and_back_without_leaving_the_page(open_page, engine):
    open_page.evaluate("document.body.dataset.marked = 'yes'")
    open_page.get_by_role("link", name="Top level").click()
    expect(open_page.locator(".sb-diagram .state")).to_have_count(5)
    expect(open_page).to_have_url(f"{MACHINE}?view=top")
    expect(open_page.locator(".sb-diagram [data-state='Fulfilling'] .count")).to_have_text("1")
    engine.fire("delivery", "R-1", "hold")
    expect(open_page.locator(".sb-diagram [data-state='Fulfilling'] .count")).to_have_text("0")
    expect(open_page.locator(".sb-diagram [data-state='On hold'] .count")).to_have_text("1")
    open_page.get_by_role("link", name="All states").click()
    expect(open_page.locator(".sb-diagram [data-state='Parcel']")).to_be_visible()
    expect(open_page).to_have_url(MACHINE)
    assert open_page.evaluate("document.body.dataset.marked") == "yes"


def test_counts_of_states_around_others_follow_those_in_them(open_page, engine):
    def shows(state: str, count: str) -> None:
        expect(open_page.locator(f".sb-diagram [data-state='{state}'] .count")).to_have_text(count)
        expect(open_page.locator(f"tr[data-state='{state}'] [data-count]")).to_have_text(count)

    shows("Fulfilling", "1")
    shows("Packed", "1")
    engine.fire("delivery", "R-1", "collect")
    shows("Packed", "0")
    shows("On its way", "1")
    shows("Parcel", "1")
    engine.fire("delivery", "R-1", "hold")
    for state in ("Fulfilling", "Parcel", "Invoice", "Customer"):
        shows(state, "0")
    expect(open_page.locator(".facts [data-total]")).to_have_text("1")


def test_an_instance_is_lit_in_every_region_and_keeps_the_size_it_was_given(page, engine, order):
    page.goto(INSTANCE)
    is_live(page)
    page.get_by_role("button", name="Actual size").click()
    expect(page.locator(".sb-diagram .node.current")).to_have_count(3)
    engine.fire("delivery", "R-1", "collect")
    expect(page.locator(".sb-diagram .node.current[data-state='On its way']")).to_be_visible()
    expect(page.locator(".sb-diagram .node.current[data-state='Told']")).to_be_visible()
    expect(page.locator(".sb-diagram .cluster.current")).to_have_count(4)
    expect(page.locator(".waiting-panel")).to_contain_text("after 45 s in On its way")
    assert scale(page) == pytest.approx(1, rel=0.01)


def test_a_countdown_ticks_down_and_a_suspension_holds_it(page, engine, order):
    engine.fire("delivery", "R-1", "collect")
    page.goto(INSTANCE)
    is_live(page)
    clock = page.locator(".waiting-panel time")
    first = clock.text_content()
    expect(clock).not_to_have_text(first)
    engine.suspend("delivery", "R-1", actor="sue", reason="a test")
    expect(page.locator(".waiting-panel td")).to_have_text("paused")
    expect(page.locator("div.head .held")).to_be_visible()


def test_without_scripts_it_scrolls_and_folds_by_its_link(as_, order):
    page = as_("viewer", java_script_enabled=False)
    page.goto(MACHINE)
    expect(page.locator("[data-zoom]")).to_be_hidden()
    expect(page.locator(".sb-diagram [data-state='Parcel'] .count")).to_have_text("1")
    page.get_by_role("link", name="Top level").click()
    expect(page.locator(".sb-diagram .state")).to_have_count(5)
    page.get_by_role("link", name="All states").click()
    expect(page.locator(".sb-diagram [data-state='Parcel']")).to_be_visible()


def test_a_state_folds_under_the_hand_and_stays_live(open_page, engine):
    open_page.get_by_role("button", name="Actual size").click()
    grip = open_page.locator("#fold-3")
    grip.scroll_into_view_if_needed()
    grip.focus()
    open_page.keyboard.press("Enter")
    expect(open_page.locator(".sb-diagram [data-state='Parcel']")).to_have_class(
        "node state compound region folded occupied heat-1"
    )
    expect(open_page).to_have_url(f"{MACHINE}?fold=Parcel")
    expect(grip).to_be_focused()
    after, frame = grip.bounding_box(), open_page.locator("[data-diagram]").bounding_box()
    assert frame["x"] <= after["x"] <= frame["x"] + frame["width"]
    assert frame["y"] <= after["y"] <= frame["y"] + frame["height"]
    expect(open_page.locator(".sb-diagram [data-state='Parcel'] .count")).to_have_text("1")
    engine.create("delivery", "R-2", {"article": "lamp", "amount": 20})
    expect(open_page.locator(".sb-diagram [data-state='Paying'] .count")).to_have_text("1")
    grip.click()
    expect(open_page).to_have_url(MACHINE)
    expect(open_page.locator(".sb-diagram [data-state='Picking']")).to_be_visible()


def test_it_has_its_size_before_a_late_script_gives_it_one(page, order):
    late: list[Route] = []
    page.route("**/zoom.js", lambda route: late.append(route))
    page.goto(MACHINE, wait_until="commit")
    page.locator(".foot").wait_for()
    frame = page.locator("[data-diagram]")
    before = [scale_in(page, *size) for size in VIEWPORTS]
    expect(frame).not_to_have_class(re.compile("zoomed"))
    late[0].continue_()
    expect(frame).to_have_class(re.compile("zoomed"))
    is_live(page)
    assert before == pytest.approx([scale_in(page, *size) for size in VIEWPORTS], abs=0.02)
    assert len({round(one, 2) for one in before}) >= 3


def test_tab_goes_over_states_and_l_over_the_lines_of_one(open_page):
    open_page.locator("#state-1").focus()
    open_page.keyboard.press("l")
    focused = "document.activeElement.dataset.source"
    assert open_page.evaluate(focused) == "Paying"
    open_page.keyboard.press("Escape")
    expect(open_page.locator("#state-1")).to_be_focused()
    for _ in range(3):
        open_page.keyboard.press("Tab")
        assert open_page.evaluate("document.activeElement.matches('a.state, a.queue')")


def test_what_is_late_is_marked_as_it_gets_late_without_a_new_drawing(page, engine):
    engine.publish(
        {"id": "desk", "initial": "Open", "states": {"Open": {"sla": "2s", "on": {"take": "Done"}}, "Done": {}}}
    )
    page.goto("/machines/desk/?mode=flow")
    is_live(page)
    page.evaluate("document.querySelector('.sb-diagram').dataset.marked = 'yes'")
    engine.create("desk", "slow")
    mark = page.locator("#late-1")
    expect(mark).to_have_accessible_name("1 in Open over service level")
    expect(mark).to_be_visible()
    engine.fire("desk", "slow", "take")
    expect(mark).to_be_hidden()
    assert page.evaluate("document.querySelector('.sb-diagram').dataset.marked") == "yes"


def test_the_drawing_in_the_admin_zooms_too(as_, delivery):
    page = as_("operator", "staff")
    get_user_model().objects.filter(username="staff").update(is_staff=True)
    publishing.adopt_published({})
    page.goto(f"/admin/machines/machine/{Machine.objects.get(name='delivery').pk}/change/")
    frame = page.locator(".sb-frame")
    frame.focus()
    before = frame.locator("svg").bounding_box()["width"]
    page.keyboard.press("+")
    expect(frame).to_have_class("sb-frame zoomed")
    assert frame.locator("svg").bounding_box()["width"] == pytest.approx(before * 1.25, rel=0.01)
