"""The table of machines: a row says what is broken, since when, and how much there is; those in trouble come first."""

from __future__ import annotations

import time

import pytest

from dashboard.overview.presenters import Figures, Ordering, describe, draw_sparkline, lay_out, trace
from dashboard.shared.counts import StateCount
from machines.models import Measurement, SamplingTurn
from tests.engine.builders import machine
from tests.pages.reading import Element, read

DESK = {"Open": {"sla": "15m", "on": {"take": "Taken"}}, "Taken": {"type": "final"}}
MENDER = {"Broken": {"invoke": {"src": "mend", "queue": "mend", "retry": {"attempts": 1}}}}


def row(page: Element, name: str) -> Element:
    return page.one("tr", data_machine=name)


def cells(page: Element, name: str) -> dict[str, str]:
    return {cell["data-label"]: cell.text for cell in row(page, name).all("td") if "data-label" in cell.attributes}


def order(page: Element) -> list[str]:
    return [each["data-machine"] for each in page.all("tr") if "data-machine" in each.attributes]


@pytest.fixture
def fleet(engine, db) -> None:
    """Four machines: nothing is wrong with "calm" and "busy"; "desk" is late, "mender" has a dead job."""
    engine.publish(machine("busy", {"A": {}}))
    engine.publish(machine("calm", {"A": {}}))
    engine.publish(machine("desk", DESK))
    engine.publish(machine("mender", MENDER))
    for number in range(3):
        engine.create("busy", f"b{number}")
    now = int(time.time() * 1000)
    engine.create("desk", "slow", now=now - 3_600_000)
    engine.create("desk", "done")
    engine.fire("desk", "done", "take")
    engine.create("mender", "bad")
    (job,) = engine.take("mender", "mend", "w")
    engine.fail(job, "no")


def test_those_in_trouble_come_first_each_with_its_severity_as_a_word(as_, fleet):
    page = read(as_("viewer").get("/"))
    assert order(page) == ["mender", "desk", "busy", "calm"]
    for name, text in (("mender", "1 job dead on mender/mend"), ("desk", "1 instance of desk in Open for longer")):
        link = row(page, name).one("a", class_="severity")
        assert "warning" in link.text
        assert text in link.text
    assert not row(page, "calm").all("a", class_="severity")


def test_a_row_has_the_figures_of_its_machine(as_, fleet):
    page = read(as_("viewer").get("/"))
    desk, mender = cells(page, "desk"), cells(page, "mender")
    assert (desk["instances"], desk["late"], desk["dead jobs"]) == ("2", "1", "0")
    assert desk["oldest"] == "1 h Open"
    assert (mender["instances"], mender["late"], mender["dead jobs"]) == ("1", "0", "1")
    states = row(page, "desk").one("a", class_="bar-of-states")
    assert states["aria-label"] == "states of desk: Open 1, Taken 1"
    assert [part["class"] for part in states.all("rect") if "x" in part.attributes] == ["s-late", "s-rest"]
    assert [(part["x"], part["width"]) for part in states.all("rect") if "x" in part.attributes] == [
        ("0.0", "50.0"),
        ("50.0", "50.0"),
    ]


@pytest.mark.parametrize(
    ("sort", "names"),
    [
        ("name", ["busy", "calm", "desk", "mender"]),
        ("-name", ["mender", "desk", "calm", "busy"]),
        ("instances", ["busy", "desk", "mender", "calm"]),
        ("late", ["desk", "busy", "calm", "mender"]),
        ("oldest", ["desk", "busy", "mender", "calm"]),
        ("<b>", ["mender", "desk", "busy", "calm"]),
    ],
)
def test_headers_sort(as_, fleet, sort, names):
    assert order(read(as_("viewer").get(f"/?sort={sort}"))) == names


def test_a_header_says_how_the_table_is_sorted_and_turns_it_round(as_, fleet):
    page = read(as_("viewer").get("/?sort=name&system=1"))
    header = page.one("th", aria_sort="ascending").one("a")
    assert header.text.startswith("machine")
    assert header["href"] == "?system=1&sort=-name"
    hrefs = {link.text: link["href"] for link in page.one("table", class_="machines").one("thead").all("a")}
    assert (hrefs["alarm"], hrefs["dead"]) == ("?system=1", "?system=1&sort=dead")


def test_marks_tell_paused_queues_and_a_roll_out(as_, engine, fleet):
    engine.pause("mender", "mend", actor="ann", reason="x")
    engine.publish(machine("calm", {"A": {}, "B": {}}), rollout=10)
    page = read(as_("viewer").get("/"))
    assert row(page, "mender").one("span", class_="held").text == "1 queue paused"
    assert "v2 to 10" in row(page, "calm").one("span", class_="differs").text


def test_the_trend_is_drawn_by_the_server_from_the_kept_statistics(as_, fleet):
    minute = int(time.time()) // 60 * 60
    for back, count in ((3, 5), (2, 42)):
        Measurement.objects.create(machine="busy", period=60, at=minute - back * 60, covered=60_000, transitions=count)
    SamplingTurn.objects.create(pk=1, at=minute * 1000, began=1)
    page = read(as_("viewer").get("/"))
    spark = row(page, "busy").one("svg", class_="spark")
    said = "transitions per minute over the last hour: 5 to 42, latest 42, no data in 58 of 60 steps"
    assert spark["aria-label"] == said
    assert row(page, "calm").one("td", class_="trend").text == "no data"


def test_a_sparkline_has_gaps_and_dots():
    assert trace([0, 1, None, 1]).count("M") == 2
    assert trace([None, 2.0]) == "M96.0 2.0h.1"
    assert describe([0.4, 12.0], "the last hour") == "transitions per minute over the last hour: 0.4 to 12, latest 12"
    assert "<path" in draw_sparkline([0.0], "the last hour")


def test_the_bar_of_states_adds_up_and_colour_is_for_states_past_a_service_level():
    states = [StateCount("a", 1), StateCount("b", 0), StateCount("c", 3, final=True), StateCount("d", 4, leaves=("e",))]
    parts = lay_out(states, late={"e"})
    assert [(part.colour, part.x, part.width) for part in parts] == [
        ("s-a", 0.0, 12.5), ("s-b", 12.5, 0.0), ("s-rest", 12.5, 37.5), ("s-late", 50.0, 50.0),
    ]  # fmt: skip


def test_equal_trouble_is_ordered_by_name():
    figures = {name: Figures(name, 1, 0, 0, 0, 0.0, 0.0, 0) for name in ("b", "a")}
    figures["z"] = Figures("z", 0, 0, 0, 0, 0.0, 0.0, 0)
    assert Ordering().sort(figures) == ["z", "a", "b"]
