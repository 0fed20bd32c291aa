"""Timers that cannot be carried out, and how many there may be."""

import pytest

from machines.engine import EngineFault, Refused
from tests.engine.builders import NOW, fields, machine, publish, started
from tests.engine.dumps import unchanged

from .clockwork import due, lamp, sender

# What cannot be carried out


def fragile():
    """Its timer fails until ``mend``."""
    states = {
        "A": {
            "after": {"1s": {"target": "B", "actions": {"set": {"n": "1 / n"}}}},
            "on": {"mend": {"actions": {"set": {"n": "1"}}}},
        },
        "B": {},
    }
    return machine("fragile", states, context=fields(n={"type": "number", "default": 0}))


def test_a_timer_whose_step_fails_is_put_off_seen_as_overdue_and_tried_again(engine):
    started(engine, fragile())
    assert engine.tick("fragile", now=NOW + 1_000) == 0
    stuck, live = engine.get("fragile", "x"), engine.live("fragile")
    assert (stuck.state, stuck.revision, due(stuck)) == ("A", 1, [1_000])
    assert (live.timers, live.overdue, live.late) == (1, 1, 1)
    assert engine.advance("fragile", now=NOW + 2_000) == (0, NOW + 61_000), "a minute later"
    assert engine.fire("fragile", "x", "mend", now=NOW + 3_000).data == {"n": 1}
    assert engine.tick("fragile", now=NOW + 60_999) == 0
    assert engine.tick("fragile", now=NOW + 61_000) == 1
    assert engine.get("fragile", "x").state == "B"
    assert (engine.live("fragile").overdue, engine.live("fragile").late) == (0, 0)


def test_why_it_was_put_off_stands_in_the_log(engine):
    started(engine, fragile())
    engine.tick("fragile", now=NOW + 1_000)
    ((_, entry),) = engine.client.xrange(engine.keys.partition("fragile").log)
    assert (entry["kind"], entry["name"], entry["instance"]) == ("timer", "postponed", "x")
    assert "division by zero" in entry["data"]


def test_a_timer_that_was_put_off_is_disarmed_like_any_other(engine):
    definition = fragile()
    definition["states"]["A"]["on"]["leave"] = "B"
    publish(engine, definition, "x", "y", "z")
    engine.tick("fragile", now=NOW + 1_000)
    assert engine.live("fragile").overdue == 3
    engine.fire("fragile", "x", "leave", now=NOW + 2_000)
    engine.delete("fragile", "y")
    engine.suspend("fragile", "z", actor="a", reason="r", now=NOW + 2_000)
    assert engine.live("fragile").overdue == 0
    assert engine.live("fragile").timers == 0


def test_a_timer_that_fails_keeps_no_other_waiting(engine):
    publish(engine, fragile(), "bad", "good")
    engine.fire("fragile", "good", "mend", now=NOW)
    assert engine.tick("fragile", now=NOW + 1_000) == 1
    assert engine.get("fragile", "good").state == "B"


def test_an_instance_that_cannot_be_read_keeps_no_other_waiting(engine):
    publish(engine, lamp(), "bad", "good")
    engine.client.hset(engine.keys.partition("lamp").instance("bad"), "_state", "Nowhere")
    assert engine.tick("lamp", now=NOW + 10_000) == 1
    assert engine.live("lamp").overdue == 1
    assert engine.get("lamp", "good").state == "Off"


def test_a_machine_whose_timers_cannot_be_read_keeps_no_other_waiting(engine):
    publish(engine, lamp(), "x")
    other = lamp() | {"id": "other"}
    publish(engine, other, "x")
    key = engine.keys.partition("lamp").timers
    engine.client.delete(key)
    engine.client.set(key, "foreign")
    driven = engine.drive(["lamp", "other", "never_was"], now=NOW + 10_000)
    assert (driven.moved, len(driven.faults)) == (1, 1)
    assert isinstance(driven.faults[0], EngineFault)
    assert engine.get("other", "x").state == "Off"


# Bounds


def test_an_instance_has_at_most_a_thousand_timers(engine):
    loop = {"foreach": {"in": "range(0, event.n)", "item": "wait", "do": [{"send": {"event": "e0", "delay": 100}}]}}
    started(engine, sender(loop))
    assert len(engine.fire("sender", "x", "go", {"n": 999}, now=NOW).timers) == 999
    with unchanged(engine), pytest.raises(Refused, match="an instance has at most 1000 timers"):
        engine.fire("sender", "x", "go", {"n": 2}, now=NOW)
    assert len(engine.fire("sender", "x", "go", {"n": 1}, now=NOW).timers) == 1000
    fired = engine.tick("sender", now=NOW + 100)
    assert fired > 0
    instance = engine.get("sender", "x")
    assert (len(instance.data["got"]), len(instance.timers)) == (fired, 1000 - fired)


def test_the_timers_of_an_instance_have_a_size_together(engine):
    started(engine, sender({"send": {"event": "e0", "delay": 100, "data": {"text": "event.text"}}}))
    for _ in range(4):
        engine.fire("sender", "x", "go", {"text": "x" * 60_000}, now=NOW)
    with unchanged(engine), pytest.raises(Refused, match="the timers of an instance have at most 262144 bytes"):
        engine.fire("sender", "x", "go", {"text": "x" * 60_000}, now=NOW)
    engine.tick("sender", now=NOW + 100)
    assert engine.fire("sender", "x", "go", {"text": "x" * 60_000}, now=NOW).revision == 10


def test_timers_that_only_wait_cost_a_tick_nothing(engine):
    """Not one command more, with a hundred thousand of them than with one."""
    publish(engine, lamp())
    key = engine.keys.partition("lamp").timers
    engine.client.zadd(key, {"a1a1:first": NOW * 2})
    before = _commands(engine)
    for start in range(0, 100_000, 10_000):
        engine.client.zadd(key, {f"a1a1:w{n}": NOW * 2 + n for n in range(start, start + 10_000)})
    _commands(engine)  # after a pause, which a slow machine takes for all these, a tick reads once more what it knows
    assert _commands(engine) == before
    assert engine.advance("lamp", now=NOW) == (0, NOW * 2)


def _commands(engine):
    """How often a tick calls each command."""

    def calls():
        stats = engine.client.info("commandstats")
        return {
            name: row["calls"] for name, row in stats.items() if not name.startswith(("cmdstat_info", "cmdstat_zadd"))
        }

    before = calls()
    engine.advance("lamp", now=NOW)
    after = calls()
    return {name: count - before.get(name, 0) for name, count in after.items() if count != before.get(name, 0)}
