"""The overview follows the fleet without moving a row; the wall screen follows it too, and says when it is old."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import is_live
from tests.engine.builders import machine

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
    bar.focus()
    expect(row.locator(".tip")).to_be_visible()
    expect(row.locator(".tip")).to_contain_text("Shut")


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


def test_the_wall_follows_the_fleet(page, engine, fleet):
    page.goto("/wall/")
    expect(page.locator("[data-wall-status]")).to_have_text("Live")
    expect(page.get_by_text("jobs dead")).to_be_visible()
    kill(engine)
    expect(page.locator(".tile").first).to_contain_text("mender")
    expect(page.locator(".tile").first).to_contain_text("dead")


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
    page.clock.run_for(13_000)
    expect(page.locator(".tile", has_text="m00")).to_be_hidden()
    expect(pages).not_to_have_text(re.compile(r"^machines 1–"))
