"""An alarm that somebody set on the time in a state stands while the rule is broken."""

from __future__ import annotations

from itertools import count

import pytest

from machines.insight import comparison
from machines.insight.errors import BadSearch
from machines.insight.ingestion import InsightDuty
from machines.insight.store import get_store
from tests.configuration import configure
from tests.insight.test_ingestion import DEFINITION, look_at_all, run
from tests.pages.reading import read
from tests.retention.conftest import Restless

RULE = "p50 of order/New over 2 x 1h"
HOUR = 3_600_000


@pytest.fixture
def slow(engine, settings, tmp_path, transactional_db, monkeypatch):
    """Twenty stays of a minute in the hour before the last one; returns a function that adds stays in this hour."""
    configure(settings, INSIGHT=tmp_path / "facts", INSIGHT_ALARMS=[RULE])
    monkeypatch.setattr(comparison, "DRIFT_PAUSE", 0)
    engine.publish(DEFINITION)
    duty, numbers, now = InsightDuty(engine, share=Restless()), count(), engine.read_clock()

    def add(stays: int, seconds: int, ended: int = now - 1_000, event: str = "pay") -> None:
        for _ in range(stays):
            id = f"i{next(numbers)}"
            engine.create("order", id, now=ended - seconds * 1000)
            engine.fire("order", id, event, now=ended)
        if get_store().manifest("order").swept:
            look_at_all(get_store())
        run(duty)

    add(20, 60, now - HOUR - 600_000)
    return add


def find_alarms(viewer) -> list[dict]:
    found = viewer.get("/api/v1/alarms").json()["items"]
    return [alarm for alarm in found if alarm["kind"] == "drift"]


def test_a_share_that_grew_by_more_than_chance_is_an_alarm(slow, engine, settings, viewer):
    rule = "share of order/New > Void over 2 x 1h"
    configure(settings, INSIGHT_ALARMS=[rule])
    engine.publish({**DEFINITION, "states": {**DEFINITION["states"], "New": {"on": {"pay": "Paid", "void": "Void"}},
                                             "Void": {"type": "final"}}})  # fmt: skip
    slow(17, 60)
    slow(3, 60, event="void")
    assert find_alarms(viewer) == []  # of none and 3 of 20 the interval includes 0
    slow(2, 60, event="void")
    (alarm,) = find_alarms(viewer)
    assert alarm["text"] == "share of order from New to Void was 22.7 % in the last 1 h, and 0 % in the 1 h before"


def test_a_state_that_takes_twice_as_long_is_an_alarm_until_it_does_not(slow, viewer):
    slow(20, 120)
    assert find_alarms(viewer) == []  # twice as long, and not over it
    slow(1, 121)
    assert find_alarms(viewer) == []  # a median of 21 stays
    slow(40, 180)
    (alarm,) = find_alarms(viewer)
    assert alarm["text"] == "p50 of order in New was 3 min in the last 1 h, and 1 min in the 1 h before"
    assert (alarm["key"], alarm["severity"], alarm["machine"]) == (f"drift:order/{RULE}", "warning", "order")
    item = read(viewer.get("/alarms/")).one("li", data_alarm=alarm["key"])
    assert item.one("a", href="/machines/order/insight/?show=times")
    slow(200, 30)
    assert find_alarms(viewer) == []


def test_few_stays_are_too_few_to_tell(slow, viewer):
    slow(19, 600)
    assert find_alarms(viewer) == []
    slow(1, 600)
    assert len(find_alarms(viewer)) == 1


def test_a_store_that_is_away_raises_nothing_and_lets_others_stand(slow, viewer, settings):
    slow(20, 600)
    get_store().folder("order").joinpath("manifest.json").write_text("half a fi")
    assert find_alarms(viewer) == []
    configure(settings, INSIGHT=None)
    assert find_alarms(viewer) == []


def test_a_rule_that_takes_too_long_stops_no_reading(slow, viewer, monkeypatch, caplog):
    slow(20, 600)
    assert len(find_alarms(viewer)) == 1

    def fail(*_, **__):
        raise BadSearch("the answer takes more than 30 s")

    monkeypatch.setattr(comparison, "drift", fail)
    slow(1, 600)
    assert get_store().manifest("order").count == 82
    assert find_alarms(viewer) == []
    assert "more than 30 s" in caplog.text


def test_a_path_has_alarms_on_its_share_and_its_time(slow, engine, settings, viewer):
    time, share = "p50 of order/New > Void over 2 x 1h", "share of order/New > Paid > Void over 2 x 1h"
    configure(settings, INSIGHT_ALARMS=[time, share])
    ways = {"pay": "Paid", "void": "Void"}
    engine.publish({**DEFINITION, "states": {"New": {"on": ways}, "Paid": {"on": ways}, "Void": {"type": "final"}}})
    now = engine.read_clock()

    def go(count: int, begin: int, *events: str) -> None:
        for number in range(count):
            id = f"{begin}-{events}-{number}"
            engine.create("order", id, now=now - begin)
            for event in events:
                engine.fire("order", id, event, now=now - begin + 60_000)

    go(19, 2 * HOUR - 300_000, "void")
    go(1, 2 * HOUR - 300_000, "pay", "void")
    go(30, 600_000, "void")
    slow(0, 0)
    assert find_alarms(viewer) == []
    go(20, 600_000, "pay", "void")
    slow(0, 0)
    (alarm,) = find_alarms(viewer)
    assert alarm["text"] == "share of order New → Paid → Void was 40 % in the last 1 h, and 5 % in the 1 h before"
    engine.create("order", "late", now=now - 2 * HOUR + 300_000)
    go(1, 2 * HOUR - 300_000 + 1, "void")
    for number in range(40):
        engine.create("order", f"slow-{number}", now=now - 400_000)
        engine.fire("order", f"slow-{number}", "void", now=now - 100_000)
    slow(0, 0)
    assert "p50 of order on New → Void was 5 min in the last 1 h, and 1 min in the 1 h before" in [
        alarm["text"] for alarm in find_alarms(viewer)
    ]


def test_a_state_of_a_region_has_alarms(slow, engine, settings, viewer, caplog):
    rules = ["p50 of room/Open over 2 x 1h", "share of room/Open > Shut over 2 x 1h"]
    configure(settings, INSIGHT_ALARMS=[*rules, "share of room/Open > Open over 2 x 1h", "p50 of room/All over 2 x 1h"])
    door = {"Open": {"on": {"shut": "Shut", "lock": "Locked"}}, "Shut": {}, "Locked": {}}
    lamp = {"Dark": {"on": {"light": "Lit"}}, "Lit": {}}
    regions = {"Door": {"initial": "Open", "states": door}, "Lamp": {"initial": "Dark", "states": lamp}}
    engine.publish({"id": "room", "initial": "All", "states": {"All": {"type": "parallel", "states": regions}}})
    now = engine.read_clock()

    def go(count: int, event: str, begin: int, seconds: int) -> None:
        for number in range(count):
            id = f"{begin}-{event}-{number}"
            engine.create("room", id, now=now - begin)
            engine.fire("room", id, "light", now=now - begin + 1_000)
            engine.fire("room", id, event, now=now - begin + seconds * 1000)

    go(18, "lock", 2 * HOUR - 300_000, 60)
    go(2, "shut", 2 * HOUR - 300_000, 60)
    go(20, "shut", 600_000, 180)
    slow(0, 0)
    assert {alarm["text"] for alarm in find_alarms(viewer)} == {
        "p50 of room in Open was 3 min in the last 1 h, and 1 min in the 1 h before",
        "share of room from Open to Shut was 100 % in the last 1 h, and 10 % in the 1 h before",
    }
    assert "another region stays in Open, too" in caplog.text
    assert "room has no leaf state All" in caplog.text


def test_a_rule_about_no_state_is_logged(slow, settings, caplog):
    configure(settings, INSIGHT_ALARMS=["p50 of order/Nwe over 2 x 1h", "p50 of other/Paid over 2 x 1h"])
    slow(1, 60)
    assert "order has no leaf state Nwe" in caplog.text
    assert "other" not in caplog.text
