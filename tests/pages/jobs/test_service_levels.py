"""What is late, on the overview and in the list it leads to."""

from __future__ import annotations

import time

import pytest

from dashboard.alarms import queries
from dashboard.shared.counts import Depth
from machines.alarms import detection as alarms
from machines.engine import Pause, WorkerInfo
from machines.engine.definitions import durations
from machines.people.permissions import NOTHING
from tests.cases import for_each
from tests.pages.reading import read

HOUR = 3_600_000
DESK = {
    "id": "desk",
    "initial": "Open",
    "states": {"Open": {"sla": "15m", "on": {"take": "On hold"}}, "On hold": {"on": {"drop": "Open"}}},
}


@pytest.fixture
def desk(engine, db) -> str:
    """Three instances that were opened 40, 20 and 0 minutes ago, and one on hold."""
    engine.publish(DESK)
    now = int(time.time() * 1000)
    for id, ago in (("old", 40), ("late", 20), ("new", 0), ("held", 50)):
        engine.create("desk", id, now=now - ago * 60_000)
    engine.fire("desk", "held", "take", now=now - 45 * 60_000)
    return "desk"


def listed(page) -> list[str]:
    return [link.text for link in page.one("table", class_="instances").all("a", class_="key")]


def test_the_overview_says_how_many_are_late_and_leads_to_them(as_, engine, desk):
    client = as_("viewer")
    (link,) = read(client.get("/")).one("ul", class_="alarms").all("a")
    assert link.text == "2 instances of desk in Open for longer than 15 min"
    assert link["href"] == "/machines/desk/?state=Open&older=15m#instances"
    page = read(client.get(link["href"]))
    assert listed(page) == ["old", "late"]
    chips = page.one("ul", aria_label="Filters").all("a")
    assert [chip.text for chip in chips] == ["state Open ×", "older 15m ×"]


def test_an_alarm_goes_with_what_was_late(as_, engine, desk):
    client = as_("viewer")
    engine.fire("desk", "old", "take")
    assert "1 instance of desk in Open for longer than 15 min" in read(client.get("/")).text
    engine.fire("desk", "late", "take")
    assert "for longer than" not in read(client.get("/")).text


def test_the_list_keeps_its_terms_on_every_way_on_but_the_one_out(as_, desk):
    page = read(as_("viewer").get("/machines/desk/?state=Open&older=30m"))
    assert listed(page) == ["old"]
    hrefs = [link["href"] for link in page.all("a") if link.text in ("Reverse order", "Clear filters")]
    assert hrefs == [
        "/machines/desk/#instances",
        "/machines/desk/?state=Open&older=30m&order=newest#instances",
    ]
    assert "No results." in read(as_("viewer", "another").get("/machines/desk/?state=Open&older=2h")).text


@pytest.mark.parametrize("older", ["soon", "15", "-3m", "<b>", "1e9h"])
def test_what_is_no_length_of_time_is_a_400(as_, desk, older):
    answer = as_("viewer").get("/machines/desk/", {"older": older})
    assert answer.status_code == 400
    assert b"is not a duration" in answer.content


def test_the_live_overview_has_the_same_figures(as_, desk):
    value = as_("viewer").get("/api/v1/live/?topic=overview").json()["data"]
    assert value["machines"]["desk"]["breaches"] == {"Open": 2}


def test_a_queue_that_stays_paused_raises_an_alarm(engine, devices):
    stats = engine.stats(devices)["todo"]

    def raised(**facts):
        given = stats.as_dict() | {"paused": None} | facts
        found = alarms.raise_alarms(alarms.Figures([], [], paused=[("m", type(stats)(**given))], now=stats.now))
        return [(alarm.text, queries.link_alarm(alarm, NOTHING).url) for alarm in found]

    pause = Pause(stats.now - 3 * HOUR, "ann", "rates")
    assert raised() == []
    assert raised(paused=Pause(stats.now - HOUR + 1000, "ann", "rates")) == []
    assert raised(paused=pause) == [("m/todo paused for 3 h by ann", "/queues/m/todo/")]


@for_each(
    "lacking, depth, said",
    [
        ([["pay"]], Depth("m", "q", 1, 0, 0, 0), ["no worker has a handler for pay, needed by jobs on m/q"]),
        ([["pay"]], Depth("m", "q", 0, 0, 2, 0), ["no worker has a handler for pay, needed by jobs on m/q"]),
        (
            [["pay", "ship"], ["pay"]],
            Depth("m", "q", 1, 0, 0, 0),
            ["no worker has a handler for pay, needed by jobs on m/q"],
        ),
        ([["pay"], []], Depth("m", "q", 1, 0, 0, 0), []),
        ([["pay"]], Depth("m", "q", 0, 3, 0, 0), []),
    ],
)
def test_a_handler_that_nobody_has_raises_an_alarm(lacking, depth, said):
    now = int(time.time() * 1000)
    workers = [
        WorkerInfo("w", "box", 1, ["m/q"], in_hand=0, started=now, seen=now, lacking={"m/q": names})
        for names in lacking
    ]
    assert [alarm.text for alarm in alarms.raise_alarms(alarms.Figures([depth], workers))] == said


def test_a_pause_is_on_the_overview(as_, engine, devices):
    engine.pause(devices, "todo", actor="ann", reason="x", now=int(time.time() * 1000) - 2 * HOUR)
    assert "new_device/todo paused for 2 h by ann" in read(as_("viewer").get("/")).text


def test_the_machine_says_what_its_service_levels_are(as_, desk):
    page = read(as_("viewer").get("/machines/desk/"))
    rows = {row["data-state"]: row.one("th").text for row in page.all("tr") if "data-state" in row.attributes}
    assert rows == {"Open": "Open ≤ 15 min", "On hold": "On hold"}


@pytest.mark.parametrize(("ms", "text"), [(900_000, "15m"), (1500, "1500ms"), (86_400_000, "1d"), (5_400_000, "90m")])
def test_a_length_is_written_as_definitions_have_it(ms, text):
    assert durations.format_duration(ms) == text


def test_a_machine_that_cannot_be_read_is_named_and_hides_no_other(as_, engine, desk, devices):
    key = engine.keys.partition("desk").state("Open")
    engine.client.delete(key)
    engine.client.set(key, "foreign")
    page = read(as_("viewer").get("/"))
    assert "Machine desk cannot be read" in page.text
    assert "is known here, but Redis does not have it" not in page.text
    assert page.one("tr", data_machine="new_device")


def test_a_suspended_instance_raises_no_alarm(as_, engine, desk):
    for id in ("old", "late"):
        engine.suspend("desk", id, actor="ann", reason="waits for the customer")
    assert "for longer than" not in read(as_("viewer").get("/")).text
