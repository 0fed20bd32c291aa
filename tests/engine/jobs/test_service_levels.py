"""Service levels: how many instances have been in a state for too long, and which."""

import pytest

from machines.engine import BadInput, Engine
from tests.engine.builders import NOW, machine, publish

MINUTE = 60_000
DESK = machine(
    "desk",
    {
        "Open": {"sla": "15m", "on": {"take": "Taken", "again": {"target": "Open", "reenter": True}}},
        "Taken": {"sla": "1h", "on": {"drop": "Open", "done": "Done"}},
        "Done": {"type": "final"},
    },
)
LINES = machine(
    "lines",
    {
        "Work": {
            "type": "parallel",
            "on": {"stop": "End"},
            "states": {
                "left": {"initial": "a", "states": {"a": {"sla": "10m", "on": {"go": "b"}}, "b": {}}},
                "right": {"initial": "c", "states": {"c": {"sla": "5m"}}},
            },
        },
        "End": {"type": "final"},
    },
)


def breaches(engine, name, at):
    """At so many minutes after NOW."""
    return engine.live(name, now=NOW + round(at * MINUTE)).breaches


def late(engine, state, minutes, at):
    found = engine.find("desk", state=state, older_than=minutes * 60, now=NOW + round(at * MINUTE))
    return [instance.id for instance in found.instances]


def test_an_instance_breaches_when_its_time_is_up_and_not_a_moment_before(engine):
    publish(engine, DESK)
    engine.create("desk", "x", now=NOW)
    assert engine.live("desk", now=NOW + 15 * MINUTE - 1).breaches == {"Open": 0, "Taken": 0}
    assert engine.live("desk", now=NOW + 15 * MINUTE).breaches == {"Open": 1, "Taken": 0}


def test_whoever_moves_on_in_time_is_not_counted(engine):
    publish(engine, DESK)
    for id in "abc":
        engine.create("desk", id, now=NOW)
    engine.fire("desk", "a", "take", now=NOW + 20 * MINUTE)
    engine.fire("desk", "b", "again", now=NOW + 10 * MINUTE)
    assert breaches(engine, "desk", 20) == {"Open": 1, "Taken": 0}
    assert breaches(engine, "desk", 25) == {"Open": 2, "Taken": 0}
    assert breaches(engine, "desk", 80) == {"Open": 2, "Taken": 1}
    engine.delete("desk", "c")
    assert breaches(engine, "desk", 80) == {"Open": 1, "Taken": 1}


def test_the_count_and_the_list_are_of_the_same_instances(engine):
    publish(engine, DESK)
    for number in range(20):
        engine.create("desk", f"d{number:02}", now=NOW + number * MINUTE)
    for at in (14, 15, 20.5, 33, 34):
        assert breaches(engine, "desk", at)["Open"] == len(late(engine, "Open", 15, at))
    assert late(engine, "Open", 15, 17) == ["d00", "d01", "d02"]


def test_an_instance_that_is_put_there_begins_anew(engine):
    publish(engine, DESK)
    for id in "ab":
        engine.create("desk", id, now=NOW)
    engine.force("desk", "b", "Taken", actor="x", reason="y", now=NOW + 30 * MINUTE)
    assert breaches(engine, "desk", 60) == {"Open": 1, "Taken": 0}


def test_the_current_version_says_what_is_late_for_all(engine):
    publish(engine, machine("desk", {"Open": {"on": {"take": "Taken"}}, "Taken": {}}))
    engine.create("desk", "x", now=NOW)
    assert breaches(engine, "desk", 60) == {}
    publish(engine, DESK)
    assert breaches(engine, "desk", 60) == {"Open": 1, "Taken": 0}


def test_each_region_of_a_parallel_state_has_its_own(engine):
    publish(engine, LINES)
    engine.create("lines", "x", now=NOW)
    assert breaches(engine, "lines", 7) == {"a": 0, "c": 1}
    engine.fire("lines", "x", "go", now=NOW + 8 * MINUTE)
    assert breaches(engine, "lines", 30) == {"a": 0, "c": 1}
    engine.fire("lines", "x", "stop", now=NOW + 40 * MINUTE)
    assert breaches(engine, "lines", 60) == {"a": 0, "c": 0}


def test_partitions_add_up(engine):
    several = Engine(engine.client, prefix=engine.keys.prefix, partitions=4)
    several.publish(DESK)
    for number in range(30):
        several.create("desk", f"d{number}", now=NOW + (number % 3) * MINUTE)
    assert breaches(several, "desk", 16) == {"Open": 20, "Taken": 0}


def test_now_is_a_time(engine):
    publish(engine, DESK)
    with pytest.raises(BadInput, match="now"):
        engine.live("desk", now=-1)


def test_a_survey_tells_of_all_machines_what_each_tells_of_itself(engine):
    publish(engine, DESK, "x")
    publish(engine, LINES, "y")
    survey = engine.survey()
    assert set(survey.lives) == set(survey.queues) == {"desk", "lines"}
    for name, live in survey.lives.items():
        assert live.as_dict() | {"now": 0} == engine.live(name).as_dict() | {"now": 0}
        assert survey.queues[name].keys() == engine.stats(name).keys()
    assert (survey.faults, survey.workers) == ({}, [])


def test_a_machine_that_cannot_be_read_hides_no_other(engine):
    publish(engine, DESK, "x")
    publish(engine, LINES, "y")
    key = engine.keys.partition("desk").state("Open")
    engine.client.delete(key)
    engine.client.set(key, "foreign")
    survey = engine.survey()
    assert (list(survey.lives), list(survey.queues), list(survey.faults)) == (["lines"], ["lines"], ["desk"])


def test_a_machine_that_went_meanwhile_is_none(engine):
    publish(engine, DESK, "x")
    publish(engine, LINES, "y")
    engine.machines()
    engine.client.delete(engine.keys.partition("desk").meta)
    assert list(engine.survey().lives) == ["lines"]


def test_a_suspended_instance_breaks_no_service_level_until_it_is_resumed(engine):
    publish(engine, DESK)
    for id in ("held", "late"):
        engine.create("desk", id, now=NOW)
    engine.suspend("desk", "held", actor="ann", reason="the customer is away", now=NOW + MINUTE)
    assert breaches(engine, "desk", 20) == {"Open": 1, "Taken": 0}
    engine.suspend("desk", "late", actor="ann", reason="so is this one", now=NOW + 21 * MINUTE)
    assert breaches(engine, "desk", 22) == {"Open": 0, "Taken": 0}
    engine.resume("desk", "held", actor="ann", reason="back", now=NOW + 23 * MINUTE)
    live = engine.live("desk", now=NOW + 24 * MINUTE)
    assert (live.breaches["Open"], live.breached_since, live.unchecked) == (1, {"Open": NOW}, {})


def test_of_very_many_that_are_late_it_says_how_many_may_be_suspended(engine):
    publish(engine, DESK)
    ids = [f"i{number:04}" for number in range(1003)]
    for id in ids:
        engine.create("desk", id, now=NOW)
    engine.suspend("desk", ids[0], actor="ann", reason="x", now=NOW)
    live = engine.live("desk", now=NOW + 20 * MINUTE)
    assert (live.breaches["Open"], live.unchecked["Open"]) == (1002, 3)


def test_who_is_suspended_among_many_that_are_late_is_known_at_once(engine):
    """What was found among many late instances is remembered for a second, until one is suspended or resumed."""
    publish(engine, DESK, *(f"i{number}" for number in range(150)))
    assert breaches(engine, "desk", 20)["Open"] == 150
    engine.suspend("desk", "i3", actor="ann", reason="a test", now=NOW + 20 * MINUTE)
    assert breaches(engine, "desk", 20)["Open"] == 149
    engine.resume("desk", "i3", actor="ann", reason="a test", now=NOW + 20 * MINUTE)
    assert breaches(engine, "desk", 20)["Open"] == 150
    engine.delete("desk", "i4")
    live = engine.live("desk", now=NOW + 20 * MINUTE + 500)
    assert (live.breaches["Open"], live.unchecked) == (149, {})
