"""An instance's page at a moment of its past: what stood then, how its data differ, and what is no longer known."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
import redis

from dashboard.instances.history import trace_versions
from machines.engine import Instance, Step
from tests.pages.conftest import TOKEN
from tests.pages.reading import Element, read

FIELDS = {
    "count": {"type": "integer", "default": 0},
    "once": {"type": "string"},
    "never": {"type": "string"},
}
INSTANCE = "/machines/activation/instances/ATV-123:NBCSports/"


@pytest.fixture
def moved(engine, waiting):
    """At version 4: waiting, one wrong code, then active."""
    engine.fire("activation", waiting.id, "entitle", {"token": "no"})
    return engine.fire("activation", waiting.id, "entitle", TOKEN)


@pytest.fixture
def forget(prefix: str, redis_url: str) -> Callable[[str], None]:
    """Leaves an instance its last three steps. The engine itself lets the list grow a little past its length first."""

    def trimmed(id: str) -> None:
        with redis.Redis.from_url(redis_url) as client:
            (key,) = [key for key in client.scan_iter(f"*:h:{id}") if prefix.encode() in key]
            client.ltrim(key, -3, -1)

    return trimmed


@pytest.fixture
def forgetful(engine, forget, db: None):
    """An instance of which the last three steps are kept: versions 8 to 10; ``once`` was set in a lost one."""
    definition = {
        "id": "short",
        "history": 3,
        "initial": "on",
        "context": {"type": "object", "properties": FIELDS},
        "states": {"on": {"on": {"tick": {"actions": [{"set": {"count": "count + 1"}}]}}}},
    }
    engine.publish(definition)
    engine.create("short", "one", {"once": "early"})
    for _ in range(9):
        engine.fire("short", "one", "tick")
    forget("one")
    return "/machines/short/instances/one/"


def lit(page: Element) -> list[str]:
    return [part["data-state"] for part in page.one("svg", class_="sb-diagram").all(class_="current")]


def data(page: Element) -> dict[str, tuple[str, str]]:
    rows = page.one("table", class_="comparison").one("tbody").all("tr")
    return {row.one("th").one("span", class_="key").text: tuple(cell.text for cell in row.all("td")) for row in rows}


def differing(page: Element) -> list[str]:
    rows = page.one("table", class_="comparison").all("tr", class_="differs")
    return [row.one("span", class_="key").text for row in rows]


def test_a_moment_has_an_address_that_needs_no_script(as_, moved):
    page = read(as_("viewer").get(f"{INSTANCE}?at=2"))
    assert lit(page) == ["Waiting"]
    assert [part["data-transition"] for part in page.one("svg", class_="sb-diagram").all(class_="taken")] == ["t1"]
    said = page.one("div", data_region="past").text
    assert "Viewing a past revision: 2, step activate" in said
    assert "now at revision 4, in Active" in said
    assert page.one("tr", class_="chosen").all("td")[0].text == "2"
    assert page.one("input", type="range")["value"] == "2"


def test_data_then_stands_beside_data_now_and_what_changed_is_marked(as_, moved):
    page = read(as_("viewer").get(f"{INSTANCE}?at=3"))
    assert data(page)["failed"] == ("1", "0")
    assert data(page)["token"] == ('"MTOB1J"', '"MTOB1J"')
    assert data(page)["expires"][0] == "not set"
    assert {"failed", "expires"} <= set(differing(page))
    assert "token" not in differing(page)


def test_two_moments_are_compared_the_earlier_one_first(as_, moved):
    for query in ("at=3&with=2", "at=2&with=3"):
        page = read(as_("viewer", query).get(f"{INSTANCE}?{query}"))
        heads = [head.text for head in page.one("table", class_="comparison").one("thead").all("th")]
        assert heads == ["Field", "revision 2", "revision 3"]
        assert data(page)["failed"] == ("0", "1")
        assert "Compared with revision" in page.one("div", data_region="past").text


def test_where_two_moments_stand_apart_both_are_in_the_diagram(as_, moved):
    page = read(as_("viewer").get(f"{INSTANCE}?at=4&with=1"))
    compared = page.one("svg", class_="sb-diagram").all(class_="compared")
    assert lit(page) == ["Active"]
    assert [part["data-state"] for part in compared] == ["New"]


def test_now_says_nothing_of_the_past(as_, moved):
    page = read(as_("viewer").get(INSTANCE))
    assert "hidden" in page.one("div", data_region="past").attributes
    assert lit(page) == ["Active"]
    assert not page.all("table", class_="comparison")
    assert page.one("input", type="range")["value"] == "4"


def test_data_goes_back_as_far_as_it_is_known(as_, forgetful):
    page = read(as_("viewer").get(f"{forgetful}?at=8"))
    assert data(page) == {"count": ("7", "9"), "once": ('"early"', '"early"'), "never": ("not set", "not set")}
    assert differing(page) == ["count"]
    assert "Steps before revision 8 have expired." in page.text


def test_what_a_lost_step_had_set_is_not_known(as_, engine, forget, db):
    fields = {"type": "object", "properties": {"mark": {"type": "string"}}}
    to_mark = {"actions": [{"set": {"mark": "event.mark"}}]}
    states = {"on": {"on": {"tick": {"actions": []}, "mark": to_mark}}}
    engine.publish({"id": "lost", "history": 3, "initial": "on", "context": fields, "states": states})
    engine.create("lost", "lost-one")
    for event in ("tick", "tick", "tick"):
        engine.fire("lost", "lost-one", event)
    engine.fire("lost", "lost-one", "mark", {"mark": "late"})
    forget("lost-one")
    page = read(as_("viewer").get("/machines/lost/instances/lost-one/?at=4"))
    assert data(page)["mark"] == ("unknown", '"late"')
    assert differing(page) == []


def test_a_step_that_is_not_kept_is_said_to_be_gone_and_now_is_shown(as_, forgetful):
    page = read(as_("viewer").get(f"{forgetful}?at=2"))
    said = page.one("div", data_region="past").text
    assert "Revision 2 cannot be shown: its step has expired; the oldest available is revision 8." in said
    assert not page.all("table", class_="comparison")


def test_a_version_that_has_not_come_yet_is_not_shown_either(as_, moved):
    said = read(as_("viewer").get(f"{INSTANCE}?at=9")).one("div", data_region="past").text
    assert "the instance is at revision 4" in said


@pytest.mark.parametrize("query", ["at=x", "at=-1", "at=٣", "at=2&with=1.5", "at=" + "9" * 40])
def test_what_is_no_version_is_a_400(as_, moved, query):
    assert as_("viewer").get(f"{INSTANCE}?{query}").status_code == 400


def test_the_list_shows_the_moment_however_long_ago_it_was(as_, engine, waiting):
    for _ in range(90):
        engine.force("activation", waiting.id, "Active", actor="a", reason="again")
    page = read(as_("viewer").get(f"{INSTANCE}?at=10"))
    assert page.one("tr", class_="chosen").all("td")[0].text == "10"


def test_the_script_gets_every_moment_and_the_drawing_of_one_lights_its_parts(as_, order):
    page = read(as_("viewer").get("/machines/delivery/instances/R-1/?at=3"))
    trail = json.loads(page.one("div", id="trail").text)
    assert [moment["revision"] for moment in trail] == [1, 2, 3]
    lit = page.one("svg", class_="sb-diagram").all(class_="current")
    assert len(lit) == 7  # three leaves, three regions, and what is around them


def test_actions_say_that_they_act_on_now(as_, moved):
    actions = read(as_("operator").get(f"{INSTANCE}?at=2")).one("section", class_="actions-panel")
    assert "actions apply to the current revision, revision 4" in actions.text


def test_hostile_data_of_the_past_is_text(as_, engine, activation):
    engine.create(activation, "x", {"token": "</script><b>bold</b>"})
    engine.fire(activation, "x", "activate", TOKEN)
    answer = as_("viewer").get("/machines/activation/instances/x/?at=1")
    assert "<b>bold" not in answer.content.decode()


def test_an_example_with_charts_replays_in_its_top_level_too(as_, order):
    page = read(as_("viewer").get("/machines/delivery/instances/R-1/?at=1&view=top"))
    assert lit(page) == ["Paying"]


def test_each_step_is_drawn_on_the_version_that_the_instance_had_then():
    def step(revision: int, event: str, **payload: int) -> Step:
        return Step(revision, 0, event, None, ["x"], transitions=[], payload=payload, changes={}, actor="", reason="")

    now = Instance("a", "lamp", ["x"], {}, revision=4, version=3, created=0, entered=0)
    steps = [step(4, "(migrate)", **{"from": 1, "to": 3}), step(3, "press"), step(2, "press"), step(1, "create")]
    assert trace_versions(now, steps) == {4: 3, 3: 1, 2: 1, 1: 1}
