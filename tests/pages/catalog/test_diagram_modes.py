"""What the drawing of a machine tells in each mode; and that its figures are those of the lists it leads to."""

from __future__ import annotations

import random
import time
from dataclasses import replace

import pytest

from dashboard.shared import diagram_modes
from dashboard.shared.diagram_modes import MODES, format_duration
from dashboard.shared.version_view import load_version
from machines.engine import Refused
from machines.engine.definitions import Outline
from machines.insight.statistics import recording
from machines.models import Measurement
from tests.cases import for_each
from tests.pages.reading import Element, read

HOUR = 3_600_000
DESK = {
    "id": "desk",
    "initial": "Open",
    "states": {
        "Open": {"sla": "15m", "on": {"take": "On hold", "break": "Broken"}},
        "On hold": {"on": {"drop": "Open"}},
        "Broken": {"invoke": {"src": "mend", "queue": "mend", "retry": {"attempts": 1}}},
    },
}
EVENTS = ["collect", "bill", "hold", "resume", "cancel", "restock", "book", "deliver"]


def outline(name: str) -> Outline:
    return load_version(name, 1).outline


def drawing(page: Element) -> Element:
    return page.one("svg", class_="sb-diagram")


def badges(page: Element) -> dict[str, str]:
    return {part["data-state"]: part.one(class_="count").text for part in drawing(page).all(class_="state")}


def links(page: Element) -> dict[str, str]:
    return {part["data-state"]: part["href"] for part in drawing(page).all("a", class_="state")}


def listed(client, address: str) -> list[str]:
    """The ids a list finds, over all its pages."""
    found: list[str] = []
    while address:
        page = read(client.get(address))
        tables = page.all("table", class_="instances")
        found += [row.one("th").text for table in tables for row in table.one("tbody").all("tr")]
        further = page.all("a", rel="next")
        address = further[0]["href"].partition("#")[0] if further else ""
    return found


@pytest.fixture
def crowd(engine, delivery) -> None:
    """70 orders that went their own ways, the same in every run."""
    dice = random.Random(7)
    for number in range(70):
        engine.create("delivery", f"R-{number}", {"article": "lamp", "amount": 20})
    for job in engine.take("payment", "bank", "w", count=50):
        engine.complete(job, {"approved": dice.random() < 0.9, "receipt": "B"})
    for job in engine.take("delivery", "warehouse", "w", count=30):
        engine.complete(job, {"found": dice.random() < 0.8})
    for _ in range(200):
        try:
            engine.fire("delivery", f"R-{dice.randrange(70)}", dice.choice(EVENTS))
        except Refused:
            continue


@pytest.fixture
def desk(engine, db) -> str:
    """Three in Open, for 40, 20 and 0 minutes; one whose job is dead."""
    engine.publish(DESK)
    now = int(time.time() * 1000)
    for id, ago in (("old", 40), ("late", 20), ("new", 0), ("bad", 0)):
        engine.create("desk", id, now=now - ago * 60_000)
    engine.fire("desk", "bad", "break")
    (job,) = engine.take("desk", "mend", "w")
    engine.fail(job, "no")
    return "/machines/desk/"


@pytest.mark.parametrize("query", ["", "?mode=flow&view=top"])
def test_the_number_in_a_state_is_that_of_its_list(as_, crowd, query):
    client = as_("viewer")
    page = read(client.get(f"/machines/delivery/{query}"))
    found = {state: listed(client, href.partition("#")[0]) for state, href in links(page).items()}
    assert {state: str(len(ids)) for state, ids in found.items()} == badges(page)
    assert all(len(set(ids)) == len(ids) for ids in found.values())
    assert sum(len(ids) > 0 for ids in found.values()) > 3


def test_so_is_that_of_its_tab_and_of_its_row(as_, crowd):
    client = as_("viewer")
    page = read(client.get("/machines/delivery/"))
    for tab in page.one("nav", class_="tabs").all("a"):
        number = tab.one("b").text
        assert len(listed(client, tab["href"].partition("#")[0])) == int(number)
    for row in page.one("table", data_region="states").all("tr"):
        assert row.one("td", data_count="").text == badges(page)[row["data-state"]]


@pytest.mark.parametrize("mode", MODES)
def test_the_late_are_marked_in_every_mode_and_the_mark_leads_to_the_list_of_them(as_, desk, mode):
    client = as_("viewer")
    mark = drawing(read(client.get(f"{desk}?mode={mode}"))).one("a", class_="late", data_of="Open")
    assert (mark.text, mark["aria-label"]) == ("▲ 2", "2 in Open over service level")
    assert mark.has("class", "shown")
    assert listed(client, mark["href"].partition("#")[0]) == ["old", "late"]


@pytest.mark.parametrize("mode", MODES)
def test_those_in_error_are_marked_in_every_mode_and_are_the_figure_and_the_list_of_failures(as_, desk, mode):
    client = as_("viewer")
    page = read(client.get(f"{desk}?mode={mode}"))
    mark = drawing(page).one("a", class_="failing", data_of="Broken")
    assert (mark.text, mark["aria-label"]) == ("✕ 1", "1 in Broken in error")
    assert listed(client, mark["href"].partition("#")[0]) == ["bad"]
    assert [part["data-of"] for part in drawing(page).all(class_="shown") if part.has("class", "failing")] == ["Broken"]
    if mode == "failures":
        assert badges(page) == {"Open": "0", "On hold": "0", "Broken": "1"}
        assert listed(client, links(page)["Broken"].partition("#")[0]) == ["bad"]


def test_dead_jobs_are_the_failures_of_a_queue(as_, desk):
    page = read(as_("viewer").get(f"{desk}?mode=failures"))
    assert drawing(page).one("a", class_="queue").one(class_="count").text == "1"
    flows = [text.text for text in drawing(page).all(class_="flow")]
    assert flows
    assert not any(flows), "lines have no figure of failures"


def test_the_oldest_is_told_with_its_heat(as_, desk):
    page = read(as_("viewer").get(f"{desk}?mode=age"))
    assert badges(page)["Open"] == "40 min"
    assert badges(page)["On hold"] == ""
    (hot,) = drawing(page).all(class_="heat-3")
    assert hot["data-state"] == "Open"
    swatches = page.one("nav", class_="modes").all("span", class_="swatch")
    assert [swatch.text for swatch in swatches] == ["0 s", "≥ 1 min", "≥ 10 min", "≥ 1 h", "≥ 1 d"]


@pytest.mark.parametrize("mode", MODES)
def test_every_link_of_the_page_keeps_the_mode(as_, desk, mode):
    page = read(as_("viewer").get(f"{desk}?mode={mode}&order=newest"))
    assert page.one("a", data_mode_link=mode)["aria-current"] == "true"
    wanted = mode != "count"
    for link in (*page.one("nav", class_="tabs").all("a"), *drawing(page).all("a", class_="state")):
        assert (f"mode={mode}" in link["href"]) == wanted
    assert (f"mode={mode}" in page.one("div", data_region="listing")["data-first"]) == wanted


def test_a_mode_nobody_knows_is_the_count(as_, desk):
    page = read(as_("viewer").get(f"{desk}?mode=<b>"))
    assert page.one("nav", class_="modes")["data-mode"] == "count"


@pytest.mark.parametrize("mode", ["flow", "time"])
def test_rates_nobody_measured_are_left_out_and_the_page_says_why(as_, desk, mode):
    page = read(as_("viewer").get(f"{desk}?mode={mode}"))
    assert "no rates: workers measure them once a minute" in page.one("nav", class_="modes").text
    if mode == "flow":
        assert {part.one(class_="flow").text for part in drawing(page).all(class_="transition")} == {""}


@pytest.fixture
def measured(engine, desk) -> str:
    """Fifteen minutes in which "take" was taken 30 times and "drop" 29 times, measured up to a moment ago."""
    now = int(time.time() * 1000)
    seen = engine.survey()
    lives = {name: replace(live, now=now - 1000) for name, live in seen.lives.items()}
    recording.record(replace(seen, lives=lives), recording.turn(), now=now - 1000)
    minute = now // 60_000 * 60
    ids = {each.events[0]: each.id for state in outline("desk").states for each in state.transitions}
    for back in range(15, 0, -1):
        edges = {f"1:{ids['take']}": 2} | ({f"1:{ids['drop']}": 2} if back > 1 else {f"1:{ids['drop']}": 1})
        Measurement.objects.create(
            machine="desk", period=60, at=minute - back * 60, covered=60_000, numbers={"edges": edges}
        )
    return desk


def test_flow_is_what_the_server_measured_and_says_over_which_interval(as_, measured):
    page = read(as_("viewer").get(f"{measured}?mode=flow"))
    flows = {part["data-events"]: part.one(class_="flow").text for part in drawing(page).all("a", class_="transition")}
    assert (flows["take"], flows["drop"], flows["break"]) == ("2.0", "1.9", "")
    assert "over the last 15 min" in page.one("nav", class_="modes").text


def test_time_in_state_is_estimated_from_what_the_server_measured(as_, measured):
    page = read(as_("viewer").get(f"{measured}?mode=time"))
    assert badges(page) == {"Open": "1 min", "On hold": "", "Broken": ""}


def test_a_line_leads_to_those_that_came_to_where_it_leads(as_, desk):
    client = as_("viewer")
    lines = drawing(read(client.get(desk))).all("a", class_="transition")
    hrefs = {line["data-events"]: line["href"] for line in lines}
    assert hrefs["drop"] == "/machines/desk/?state=Open&order=newest#instances"
    assert listed(client, hrefs["drop"].partition("#")[0]) == ["new", "late", "old"]


@pytest.mark.parametrize("query", ["", "?view=top"])
def test_every_line_of_a_chart_leads_somewhere(as_, crowd, query):
    client = as_("viewer")
    page = read(client.get(f"/machines/delivery/{query}"))
    lines = drawing(page).all("a", class_="transition")
    assert lines
    assert {client.get(line["href"].partition("#")[0]).status_code for line in lines} == {200}


@for_each("ms, text", [(0, "0 s"), (59_999, "59 s"), (60_000, "1 min"), (HOUR, "1 h"), (50 * HOUR, "2 d")])
def test_a_length_has_one_unit(ms, text):
    assert format_duration(ms) == text


def test_the_scale_is_the_same_for_every_machine():
    count = diagram_modes.mode_of("count")
    assert [count.heat(figure) for figure in (0, 1, 9, 10, 999, 1000, 10**7)] == [0, 1, 1, 2, 3, 4, 5]


PARALLEL = {
    "id": "twin",
    "initial": "Both",
    "states": {
        "Both": {
            "type": "parallel",
            "states": {
                "Left": {"initial": "Idle", "states": {"Idle": {"on": {"rest": "Idle"}}}},
                "Right": {
                    "initial": "Working",
                    "states": {"Working": {"invoke": {"src": "work", "queue": "work", "retry": {"attempts": 1}}}},
                },
            },
        }
    },
}


@pytest.fixture
def twin(engine, db) -> str:
    """One instance whose second region has a dead job; one without errors."""
    engine.publish(PARALLEL)
    for id in ("bad", "good"):
        engine.create("twin", id)
    job = next(job for job in engine.take("twin", "work", "w", count=2) if job.instance == "bad")
    engine.fail(job, "no")
    return "/machines/twin/"


def test_a_failure_counts_in_the_region_that_it_belongs_to(as_, twin):
    page = read(as_("viewer").get(f"{twin}?mode=failures"))
    assert badges(page) == {"Both": "1", "Left": "0", "Idle": "0", "Right": "1", "Working": "1"}
    shown = [mark["data-of"] for mark in drawing(page).all(class_="mark") if "shown" in mark["class"].split()]
    assert shown == ["Working"]


def test_a_file_has_guards_and_actions_unless_asked_otherwise(as_, twin, delivery):
    page = "/machines/delivery/diagram.svg"
    client = as_("viewer")
    full, short = (client.get(page + query).content.decode() for query in ("", "?labels=short"))
    assert 'class="action"' in full
    assert 'class="action"' not in short
