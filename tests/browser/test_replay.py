"""The past replayed on the diagram, and what the diagram of a machine tells in its modes."""

from __future__ import annotations

import re
import time

import pytest
from playwright.sync_api import Page, expect

from machines.insight.statistics import recording
from machines.models import Measurement
from tests.pages.conftest import TOKEN

from .conftest import is_live

MACHINE = "/machines/activation/"
INSTANCE = f"{MACHINE}instances/ATV-123:NBCSports/"

WATCH = """() => {
    window.most = 0;
    const look = () => { window.most = Math.max(window.most, document.querySelectorAll(".pulse").length); };
    new MutationObserver(look).observe(document.querySelector(".sb-diagram"), { childList: true, subtree: true });
}"""


def wrong_code(engine, waiting) -> str:
    """The transition that it takes."""
    (taken,) = engine.fire("activation", waiting.id, "entitle", {"token": "no"}).outcome.transitions
    return taken


def lit(page: Page, state: str) -> None:
    expect(page.locator(".sb-diagram .node.current")).to_have_attribute("data-state", state)


@pytest.fixture
def at_five(engine, waiting):
    """Two wrong codes, then the right one: version 5, Active."""
    for token in ("no", "never", TOKEN["token"]):
        engine.fire("activation", waiting.id, "entitle", {"token": token})
    return waiting.id


def test_the_slider_replays_the_history_on_the_diagram(page, engine, at_five):
    page.goto(INSTANCE)
    is_live(page)
    slider = page.get_by_role("slider", name="Position in history")
    page.evaluate("document.body.dataset.marked = 'yes'")
    page.keyboard.press("ArrowLeft")
    lit(page, "Waiting")
    expect(page).to_have_url(f"{INSTANCE}?at=4")
    expect(page.locator("[data-region=past]")).to_contain_text("Viewing a past revision: 4")
    expect(page.locator(".comparison tr.differs")).to_contain_text([re.compile("failed"), re.compile("expires")])
    expect(page.locator(".actions-panel header")).to_contain_text("actions apply to the current revision")
    slider.focus()
    page.keyboard.press("Home")
    lit(page, "New")
    expect(slider).to_have_value("1")
    page.keyboard.press("ArrowRight")
    lit(page, "Waiting")
    expect(page.locator(".sb-diagram .taken")).to_have_attribute("data-transition", "t1")
    expect(page.locator("tr.chosen .revision")).to_have_text("2")
    engine.fire("activation", at_five, "entitle", TOKEN)
    expect(page.locator("[data-region=past]")).to_contain_text("now at revision 6")
    expect(slider).to_have_value("2")
    expect(slider).to_have_attribute("max", "6")
    lit(page, "Waiting")
    page.get_by_role("link", name="Now", exact=True).click()
    lit(page, "Active")
    expect(page).to_have_url(INSTANCE)
    expect(page.locator("[data-region=past]")).to_be_hidden()
    expect(slider).to_have_value("6")
    assert page.evaluate("document.body.dataset.marked") == "yes"


def test_a_row_of_the_history_leads_to_its_moment_and_another_to_a_comparison(page, at_five):
    page.goto(INSTANCE)
    is_live(page)
    page.locator(".steps [data-moment='3']").click()
    expect(page.locator("tr.chosen .revision")).to_have_text("3")
    page.locator(".steps [data-against='1']").click()
    expect(page).to_have_url(f"{INSTANCE}?at=3&with=1")
    expect(page.locator(".sb-diagram .compared")).to_have_attribute("data-state", "New")
    expect(page.locator(".comparison thead")).to_contain_text("revision 1")
    page.locator("[data-region=past]").get_by_role("link", name="compare with now").click()
    expect(page.locator(".comparison thead")).to_contain_text("now")
    page.get_by_role("link", name="Back to current").click()
    expect(page).to_have_url(INSTANCE)
    lit(page, "Active")


DRAG = """async (slider) => {
    const moments = new Set();
    const drawing = () => document.querySelector(".sb-diagram .node.current")?.dataset.state;
    for (let at = 0; moments.size < 2 && at < 1200; at += 1) {
        slider.value = 1 + (at % 4);
        slider.dispatchEvent(new Event("input", { bubbles: true }));
        await new Promise(requestAnimationFrame);
        moments.add(drawing());
    }
    return moments.size;
}"""


def test_the_diagram_follows_a_slider_that_is_dragged(page, at_five):
    page.goto(INSTANCE)
    is_live(page)
    slider = page.get_by_role("slider", name="Position in history")
    assert slider.evaluate(DRAG) > 1
    slider.fill("1")
    lit(page, "New")


def test_it_plays_by_itself_up_to_now(page, engine, waiting):
    page.goto(INSTANCE)
    is_live(page)
    page.get_by_role("button", name="Play").click()
    lit(page, "New")
    lit(page, "Waiting")
    expect(page.get_by_role("button", name="Play")).to_be_visible()
    expect(page).to_have_url(INSTANCE)


def test_a_diagram_tells_something_else_without_leaving_the_page(page, engine, waiting):
    page.goto(MACHINE)
    is_live(page)
    page.evaluate("document.body.dataset.marked = 'yes'")
    count = page.locator(".sb-diagram [data-state='Waiting'] .count")
    expect(count).to_have_text("1")
    page.get_by_role("link", name="Oldest").click()
    expect(count).to_have_text(re.compile(r"^\d+ s$"))
    expect(page).to_have_url(f"{MACHINE}?mode=age")
    expect(page.locator(".sb-diagram [data-state='Waiting']")).to_have_class(re.compile("heat-1"))
    page.get_by_role("link", name="Flow").click()
    expect(count).to_have_text("1")
    expect(page.get_by_text("no rates: workers measure them")).to_be_visible()
    now = int(time.time() * 1000)
    Measurement.objects.create(machine="activation", period=60, at=now // 60_000 * 60 - 60, covered=60_000)
    recording.record(engine.survey(), recording.turn(), now=now)
    page.get_by_role("link", name="Flow", exact=True).click()
    expect(page.get_by_text("over the last 1 min")).to_be_visible()
    engine.fire("activation", waiting.id, "entitle", TOKEN)
    taken = page.locator(".sb-diagram [data-source='Waiting'][data-target='Active'] .flow")
    expect(taken).to_have_text(re.compile(r"^\d+(\.\d)?$"))
    page.locator(".sb-diagram [data-source='Waiting'][data-target='Active'] .event").click()
    page.get_by_role("link", name="Instances in its target").click()
    expect(page).to_have_url(f"{MACHINE}?mode=flow&state=Active&order=newest#instances")
    expect(page.locator(".instances tbody tr")).to_have_count(1)


@pytest.mark.parametrize(("motion", "runs"), [("no-preference", True), ("reduce", False)])
def test_work_that_moves_runs_along_its_line_unless_that_is_unwanted(as_, engine, waiting, motion, runs):
    page = as_("viewer", f"v-{motion}", reduced_motion=motion)
    page.goto(MACHINE)
    is_live(page)
    page.evaluate(WATCH)
    edge = page.locator(f".sb-diagram [data-transition='{wrong_code(engine, waiting)}']")
    expect(edge.locator(".flow")).to_have_text("1")
    wrong_code(engine, waiting)
    expect(edge).to_have_class(re.compile("busy"))
    expect(edge).not_to_have_class(re.compile("busy"))
    assert (page.evaluate("window.most") > 0) == runs
    expect(page.locator(".sb-diagram .pulse")).to_have_count(0)
