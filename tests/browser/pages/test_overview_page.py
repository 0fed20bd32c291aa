"""The overview follows the fleet without moving a row; the wall screen follows it too, and says when it is old."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import is_live
from tests.engine.builders import machine

WHOLE = """() => { const list = document.querySelector(".tiles").getBoundingClientRect();
    return [...document.querySelectorAll(".tile")].filter((tile) => { const at = tile.getBoundingClientRect();
        return at.height && at.top >= list.top - 1 && at.bottom <= list.bottom + 1; })
        .map((tile) => tile.querySelector(".name").textContent); }"""
DOOR = {"Shut": {"on": {"open": "Open"}}, "Open": {}}
MENDER = {"Idle": {"on": {"go": "Broken"}}, "Broken": {"invoke": {"src": "mend", "retry": {"attempts": 1}}}}
ORDER = "() => [...document.querySelectorAll('tr[data-machine]')].map(({ dataset }) => dataset.machine)"


@pytest.fixture
def fleet(engine) -> None:
    engine.publish(machine("door", DOOR))
    engine.publish(machine("mender", MENDER))
    engine.create("door", "one")
    engine.create("mender", "one")


def kill(engine) -> None:
    """Let the job of an instance die."""
    engine.fire("mender", "one", "go")
    (queue,) = engine.queues("mender")
    (job,) = engine.take("mender", queue, "w")
    engine.fail(job, "no")


def test_rows_stay_where_they_are_until_a_new_order_is_asked_for(page, engine, fleet):
    page.goto("/")
    is_live(page)
    assert page.evaluate(ORDER) == ["door", "mender"]
    expect(page.get_by_role("button", name="New order")).to_be_hidden()
    kill(engine)
    expect(page.locator("tr[data-machine=mender] .severity")).to_contain_text("warning")
    expect(page.locator("tr[data-machine=mender] td[data-label='dead jobs']")).to_have_text("1")
    assert page.evaluate(ORDER) == ["door", "mender"]
    page.get_by_role("button", name="New order").click()
    expect(page.locator("tr[data-machine]").first).to_have_attribute("data-machine", "mender")
    expect(page.get_by_role("button", name="New order")).to_be_hidden()


def test_counts_and_the_bar_of_states_are_live_and_told_on_focus(page, engine, fleet):
    page.goto("/")
    is_live(page)
    engine.create("door", "two")
    engine.fire("door", "two", "open")
    row = page.locator("tr[data-machine=door]")
    expect(row.locator("[data-total]")).to_have_text("2")
    expect(row.locator("rect[data-state=Open]").first).to_have_attribute("width", re.compile(r"^50(\.0+)?$"))
    bar = row.get_by_role("link", name="states of door: Shut 1, Open 1")
    expect(row.locator(".tip")).to_contain_text("Shut 1")
    engine.create("door", "three")
    engine.fire("door", "three", "open")
    engine.fire("door", "one", "open")
    expect(row.locator(".tip .block", has_text="Shut")).to_have_text(re.compile(r"Shut\s+0"))
    bar = row.get_by_role("link", name="states of door: Shut 0, Open 3")
    bar.focus()
    expect(row.locator(".tip .block", has_text="Shut")).to_be_visible()


GREY = """() => [...document.querySelectorAll('.machines rect')].every((part) => {
  const [red, green, blue] = getComputedStyle(part).fill.match(/[\\d.]+/g).map(Number);
  return Math.max(red, green, blue) - Math.min(red, green, blue) < (Math.max(red, green, blue) > 1 ? 32 : 0.125);
})"""


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_states_without_trouble_are_neutral_and_a_legend_names_them(as_, engine, fleet, theme):
    page = as_("viewer", color_scheme=theme)
    page.goto("/")
    legend = page.locator("tr[data-machine=door] .tip")
    expect(legend.get_by_text("Shut")).to_be_visible()
    bar = page.locator("tr[data-machine=door] .bar-of-states").bounding_box()
    assert legend.bounding_box()["y"] + legend.bounding_box()["height"] <= bar["y"] + bar["height"] + 1
    assert page.evaluate(GREY)


def test_no_panel_stands_alone_beside_a_blank(as_, engine, fleet):
    kill(engine)
    page = as_("supervisor")
    page.goto("/")
    for width in (1400, 1280, 900, 390):
        page.set_viewport_size({"width": width, "height": 900})
        last = page.locator(".sides > section").last.bounding_box()
        whole = page.locator(".sides").bounding_box()
        assert last["x"] + last["width"] == pytest.approx(whole["x"] + whole["width"], abs=1), width


def test_a_queue_comes_with_its_first_job_and_stays_where_it_is(page, engine, fleet):
    page.goto("/")
    is_live(page)
    (queue,) = engine.queues("mender")
    row = page.locator(f"[data-queue='mender/{queue}']")
    expect(page.get_by_text("No jobs wait, run or are dead.")).to_be_visible()
    kill(engine)
    expect(row.locator("[data-place=dead]")).to_have_text("1")
    engine.redrive("mender", queue, actor="alice", reason="mended")
    (job,) = engine.take("mender", queue, "w")
    engine.complete(job)
    expect(page.locator("[data-sum=dead]")).to_have_text("0")
    expect(row.locator("[data-place=dead]")).to_have_text("0")


def test_on_a_phone_the_table_is_a_list_that_says_the_same(as_, engine, fleet):
    kill(engine)
    page = as_("viewer", viewport={"width": 390, "height": 844})
    page.goto("/")
    rows = page.locator("tr[data-machine]")
    expect(rows.first).to_have_attribute("data-machine", "mender")
    expect(rows.first.locator(".severity")).to_be_visible()
    expect(rows.first.locator(".tip")).to_contain_text("Broken")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "no wider than the phone"
    boxes = [each.bounding_box() for each in rows.all()]
    last = rows.first.locator("td:visible").last.bounding_box()
    assert last["y"] + last["height"] <= boxes[1]["y"] + 1, "no row lies on another"


def test_actions_of_an_alarm_are_small_and_stand_at_the_right_in_its_line(as_, engine, fleet):
    kill(engine)
    page = as_("supervisor", viewport={"width": 1280, "height": 900})
    page.goto("/alarms/")
    line = page.locator("[data-alarm='dead:mender/mend']")
    text, button = (each.bounding_box() for each in (line.locator(".what > a"), line.locator(".manage button").first))
    assert button["x"] > text["x"] + text["width"]
    assert button["height"] <= 28
    assert abs(button["y"] + button["height"] / 2 - text["y"] - text["height"] / 2) < 12
    line.get_by_text("Snooze or assign").click()
    expect(line.get_by_label("reason")).to_be_visible()


def test_the_wall_follows_the_fleet(page, engine, fleet):
    page.goto("/wall/")
    expect(page.locator("[data-wall-status]")).to_have_text("Live")
    expect(page.get_by_text("jobs dead")).to_be_visible()
    kill(engine)
    expect(page.locator(".tile").first).to_contain_text("mender")
    expect(page.locator(".tile").first).to_contain_text("dead")


BAND = """() => { const band = document.createElement("p"); band.className = "environment"; band.textContent = "test";
    document.querySelector("main").prepend(band); }"""


def test_the_wall_says_that_it_is_stale(page, fleet):
    page.clock.install()
    page.goto("/wall/")
    cover = page.locator(".stale-cover")
    expect(page.locator("[data-wall-status]")).to_have_text("Live")
    expect(cover).to_be_hidden()
    page.route("**/wall/", lambda route: route.fulfill(status=404, body=""))
    page.clock.fast_forward(45_000)
    expect(cover).to_be_visible()
    expect(cover).to_contain_text("STALE")
    page.evaluate(BAND)
    band = page.locator(".environment").bounding_box()
    assert band["y"] + band["height"] <= cover.bounding_box()["y"] + 1
    expect(page.locator("[data-wall-status]")).to_have_text("Stale")
    page.unroute("**/wall/")
    page.clock.fast_forward(15_000)
    expect(cover).to_be_hidden()


def test_a_wall_whose_script_does_not_run_says_so_by_its_style_alone(as_, fleet):
    page = as_("viewer", java_script_enabled=False)
    page.goto("/wall/")
    cover = page.locator(".stale-cover")
    expect(cover).to_be_hidden()
    delays = page.evaluate("document.getAnimations().map((each) => each.effect.getTiming().delay)")
    assert delays == [40_000]
    page.evaluate("document.getAnimations().forEach((each) => each.finish())")
    expect(cover).to_be_visible()


def test_machines_that_do_not_fit_take_turns_on_the_wall(as_, engine):
    for number in range(40):
        engine.publish(machine(f"m{number:02}", DOOR))
    page = as_("viewer", viewport={"width": 1400, "height": 800})
    page.clock.install()
    page.goto("/wall/")
    pages = page.locator("[data-wall-page]")
    expect(pages).to_have_text(re.compile(r"^machines 1–\d+ of 40$"))
    expect(page.locator(".tile", has_text="m00")).to_be_visible()
    seen: list[str] = []
    while len(seen) < 40:
        expect(pages).to_have_text(re.compile(rf"^machines {len(seen) + 1}–"))
        whole = page.evaluate(WHOLE)
        assert whole
        seen += whole
        page.clock.run_for(12_000)
    assert seen == [f"m{number:02}" for number in range(40)]
    expect(pages).to_have_text(re.compile("^machines 1–"))
    page.route("**/wall/", lambda route: route.fulfill(status=404, body=""))
    page.clock.fast_forward(45_000)
    cover = page.locator(".stale-cover")
    expect(cover).to_be_visible()
    top = "([x, y]) => document.elementFromPoint(x, y).closest('.stale-cover') !== null"
    box = cover.bounding_box()
    assert box["width"] == 1400
    assert all(page.evaluate(top, [x, box["y"] + box["height"] / 2]) for x in (5, 700, 1395)), "nothing covers it"
