"""What was refused is counted, by event, and in no other way noticed."""

from __future__ import annotations

import pytest

from machines.engine import Refused, errors
from tests.engine.builders import NOW, counter, door, publish
from tests.engine.dumps import unchanged


def refuse(engine, machine, id, event, times=1, **more):
    for _ in range(times):
        with pytest.raises(Refused):
            engine.fire(machine, id, event, now=NOW, **more)


def test_each_refused_event_is_counted_by_its_name_and_names_nobody_knows_together(engine):
    publish(engine, door(), "front")
    refuse(engine, "door", "front", "close", times=3)
    refuse(engine, "door", "front", "close", key="again", actor="ann")  # a key is no reason to be counted less
    for name in ("bang", "x" * 60, "refused"):
        refuse(engine, "door", "front", name)
    assert engine.live("door").refused == {"close": 4, "": 3}
    assert engine.survey().lives["door"].refused == {"close": 4, "": 3}
    assert engine.live("door").flow == {}


def test_guards_that_say_no_count_too_and_what_is_taken_does_not(engine):
    publish(engine, counter(), "c")
    for _ in range(3):
        engine.fire("counter", "c", "add", now=NOW)
    assert engine.live("counter").refused == {}
    assert not engine.client.exists(engine.keys.partition("counter").refused)
    refuse(engine, "counter", "c", "add", times=2)
    assert engine.live("counter").refused == {"add": 2}


def test_asking_counts_nothing_nor_does_what_is_the_callers_own_mistake(engine):
    publish(engine, door(), "front")
    with unchanged(engine):
        engine.explain("door", "front", "close")
        engine.preview("door", "front", "reset")
        with pytest.raises(errors.Conflict):
            engine.fire("door", "front", "close", expect=99, now=NOW)
        with pytest.raises(errors.UnknownInstance):
            engine.fire("door", "back", "close", now=NOW)
    engine.suspend("door", "front", actor="ann", reason="looks at it", now=NOW)
    with pytest.raises(errors.Suspended):
        engine.fire("door", "front", "close", now=NOW)
    assert engine.live("door").refused == {}


def test_a_count_that_cannot_be_written_takes_nothing_from_the_refusal(engine):
    publish(engine, door(), "front")
    engine.client.set(engine.keys.partition("door").refused, "foreign")
    refuse(engine, "door", "front", "close")
    assert engine.fire("door", "front", "open", now=NOW).state == "Open"


def test_the_partitions_of_a_machine_count_together(redis_url, prefix, engine):
    several = type(engine).from_url(redis_url, prefix=prefix, partitions=4)
    ids = [f"d{number}" for number in range(8)]
    publish(several, door(), *ids)
    for id in ids:
        refuse(several, "door", id, "close")
    assert several.live("door").refused == {"close": 8}
    several.client.close()
