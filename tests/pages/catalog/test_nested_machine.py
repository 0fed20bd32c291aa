"""The page of a machine whose states stand in states: sums, the list below a state, and the view of the top level."""

from __future__ import annotations

import json

import pytest

from dashboard.catalog.diagram import draw_machine
from dashboard.shared import version_view
from tests.pages.reading import Element, read, read_text

MACHINE = "/machines/delivery/"


@pytest.fixture
def orders(engine, order):
    """R-1 packed; R-2 on its way, told; R-3 paying."""
    engine.create("delivery", "R-2", {"article": "lamp", "amount": 20})
    for machine, queue, result in (
        ("payment", "bank", {"approved": True, "receipt": "B-2"}),
        ("delivery", "warehouse", {"found": True}),
    ):
        (job,) = engine.take(machine, queue, "a-worker")
        engine.complete(job, result)
    engine.fire("delivery", "R-2", "collect")
    engine.create("delivery", "R-3", {"article": "lamp", "amount": 20})
    return engine


def counts(drawing: Element) -> dict[str, str]:
    return {part["data-state"]: part.one(class_="count").text for part in drawing.all(class_="state")}


def test_a_state_around_others_counts_what_is_in_it_and_a_parallel_one_each_instance_once(as_, orders):
    page = read(as_("viewer").get(MACHINE))
    shown = counts(page.one("svg", class_="sb-diagram"))
    assert {name: shown[name] for name in ("Fulfilling", "Parcel", "Invoice", "Customer")} == {
        "Fulfilling": "2",
        "Parcel": "2",
        "Invoice": "2",
        "Customer": "2",
    }
    assert (shown["Packed"], shown["On its way"], shown["Told"], shown["Paying"]) == ("1", "1", "1", "1")
    assert page.one("p", class_="facts").one("b", **{"data-total": ""}).text == "3"


def test_the_table_of_states_is_a_tree_with_sums(as_, orders):
    rows = read(as_("viewer").get(MACHINE)).one("section", **{"aria-labelledby": "states-title"}).all("tr")
    shown = {row["data-state"]: (len(row.all(class_="indent")), row.all("td")[0].text) for row in rows}
    assert shown["Fulfilling"] == (0, "2")
    assert shown["Parcel"] == (1, "2")
    assert shown["Packed"] == (2, "1")
    assert "as it was" not in shown
    (parcel,) = (row for row in rows if row["data-state"] == "Parcel")
    assert json.loads(parcel["data-leaves"])[:2] == ["Picking", "Missing"]


def test_the_tabs_are_the_top_level_and_whatever_was_chosen(as_, orders):
    client = as_("viewer")

    def tabs(query: str) -> list[str]:
        return [tab.text for tab in read(client.get(MACHINE + query)).one("nav", class_="tabs").all("a")]

    top = ["all 3", "Paying 1", "Fulfilling 2", "On hold 0", "◎ Delivered 0", "◎ Cancelled 0"]
    assert tabs("") == top
    assert tabs("?state=Packed") == [*top, "Packed 1"]


@pytest.mark.parametrize(
    ("state", "ids"),
    [("Fulfilling", ["R-1", "R-2"]), ("Parcel", ["R-1", "R-2"]), ("Packed", ["R-1"]), ("Told", ["R-2"])],
)
def test_the_list_of_a_state_holds_all_that_stand_in_it(as_, orders, state, ids):
    page = read(as_("viewer").get(f"{MACHINE}?state={state}"))
    rows = page.one("table", class_="instances").one("tbody").all("tr")
    assert sorted(row.one("a").text for row in rows) == ids


def test_an_instance_is_listed_with_every_state_it_is_in(as_, order):
    page = read(as_("viewer").get(MACHINE))
    (row,) = page.one("table", class_="instances").one("tbody").all("tr")
    assert [state.text for state in row.all("span", class_="state")] == ["Packed", "Open", "Expecting"]


def test_a_suspended_instance_says_so_in_the_list(as_, engine, order):
    engine.suspend("delivery", order.id, actor="sue", reason="a test")
    assert "suspended" in read(as_("viewer").get(MACHINE)).one("table", class_="instances").text


def test_the_overview_shows_the_top_level_and_counts_each_instance_once(as_, orders):
    row = read(as_("viewer").get("/")).one("tr", **{"data-machine": "delivery"})
    assert row.one("b", **{"data-total": ""}).text == "3"
    blocks = {block["data-state"]: block.one("b").text for block in row.all("span", class_="block")}
    assert blocks == {"Paying": "1", "Fulfilling": "2", "On hold": "0", "Delivered": "0", "Cancelled": "0"}


def test_the_overview_of_a_parallel_machine_shows_its_leaves(as_, engine, db):
    regions = {name: {"initial": f"{name}1", "states": {f"{name}1": {}, f"{name}2": {}}} for name in ("a", "b")}
    engine.publish({"id": "both", "type": "parallel", "states": regions})
    engine.create("both", "one")
    row = read(as_("viewer").get("/")).one("tr", **{"data-machine": "both"})
    assert row.one("b", **{"data-total": ""}).text == "1"
    assert [block["data-state"] for block in row.all("span", class_="block")] == ["a1", "a2", "b1", "b2"]


def test_the_top_level_is_a_view_of_its_own_that_links_keep(as_, orders):
    client = as_("viewer")
    whole = read(client.get(MACHINE))
    assert whole.one("a", **{"data-view": ""}).text == "Top level"
    top = read(client.get(whole.one("a", **{"data-view": ""})["href"]))
    assert top.one("a", **{"data-view": ""}).text == "All states"
    assert counts(top.one("svg", class_="sb-diagram")) == {
        "Paying": "1",
        "Fulfilling": "2",
        "On hold": "0",
        "Delivered": "0",
        "Cancelled": "0",
    }
    assert (
        top.one("svg", class_="sb-diagram").one("a", id="state-2")["href"]
        == "/machines/delivery/?view=top&state=Fulfilling#instances"
    )
    assert all("view=top" in tab["href"] for tab in top.one("nav", class_="tabs").all("a"))
    assert "view=top" in top.one("a", download="delivery-1.svg")["href"]


def test_a_chosen_state_that_is_folded_away_marks_what_it_is_in(as_, orders):
    page = read(as_("viewer").get(f"{MACHINE}?view=top&state=Packed"))
    assert page.one("svg", class_="sb-diagram").one(class_="chosen")["id"] == "state-2"


def test_lines_of_the_top_level_have_the_flow_of_all_they_stand_for(engine, db):
    inner = {"a": {"on": {"quit": "Z", "go": "b"}}, "b": {"on": {"stop": "Z"}}}
    engine.publish({"id": "m", "initial": "A", "states": {"A": {"initial": "a", "states": inner}, "Z": {}}})
    for id, events in (("1", ["quit"]), ("2", ["go", "stop"])):
        engine.create("m", id)
        for event in events:
            engine.fire("m", id, event)
    svg = read_text(draw_machine(version_view.load_version("m", 1, fold="*"), engine.live("m"), None))
    (line,) = svg.all(class_="transition")
    assert line.one(class_="flow").text == "2"


def test_a_flat_machine_has_one_view_whatever_is_asked(as_, waiting):
    page = read(as_("viewer").get("/machines/activation/?view=top"))
    assert not page.all("a", **{"data-view": ""})
    assert len(page.one("svg", class_="sb-diagram").all(class_="state")) == 4


def test_the_top_level_can_be_had_alone_and_is_kept_apart(as_, delivery):
    client = as_("viewer")
    whole, top = (client.get(f"{MACHINE}diagram.svg?version=1{query}") for query in ("", "&view=top"))
    assert whole["ETag"] != top["ETag"]
    assert b"Picking" in whole.content
    assert b'data-state="Picking"' not in top.content


def test_how_many_timers_are_set_is_shown_where_a_machine_has_any(as_, engine, order, waiting):
    engine.fire("delivery", order.id, "collect")
    client = as_("viewer")
    assert read(client.get(MACHINE)).one("b", **{"data-timers": ""}).text == "1"
    assert not read(client.get("/machines/activation/")).all("b", **{"data-timers": ""})
