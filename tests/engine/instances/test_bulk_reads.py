"""Questions about many instances in one round trip give what each question alone would."""

from __future__ import annotations

import pytest

from machines.engine import (
    BadInput,
    BadPayload,
    EngineFault,
    Instance,
    InstanceExists,
    Suspended,
    UnknownInstance,
    UnknownMachine,
)
from tests.engine.builders import machine, publish

STATES = {"shut": {"on": {"open": {"target": "open", "guard": "event.by == 'me'"}}}, "open": {}}


@pytest.fixture
def door(engine):
    events = {"open": {"payload": {"by": "string"}}}
    name = publish(engine, machine("door", STATES, events=events))
    for id in ("a", "b", "held"):
        engine.create(name, id)
    engine.suspend(name, "held", actor="ann", reason="a test")
    return name


def test_each_is_as_get_gives_it_in_order(engine, door):
    first, missing, second = engine.get_many(door, ["b", "nobody", "a"])
    assert (first, second) == (engine.get(door, "b"), engine.get(door, "a"))
    assert isinstance(missing, UnknownInstance)
    assert engine.get_many(door, []) == []


def test_each_is_explained_as_alone_and_nothing_changes(engine, door):
    taken, missing, held = engine.explain_many(door, ["a", "nobody", "held"], "open", {"by": "me"})
    assert taken == engine.explain(door, "a", "open", {"by": "me"})
    assert taken.taken
    assert (type(missing), type(held)) == (UnknownInstance, Suspended)
    (refused,) = engine.explain_many(door, ["b"], "open", {"by": "you"})
    assert (refused.taken, refused.why) == (False, "guards")
    (misfit,) = engine.explain_many(door, ["b"], "open", {"by": 3})
    assert isinstance(misfit, BadPayload)
    assert engine.counts(door) == {"shut": 3, "open": 0}


def test_what_nobody_could_answer_is_raised(engine, door):
    with pytest.raises(UnknownMachine):
        engine.get_many("nothing", ["a"])
    with pytest.raises(BadInput):
        engine.get_many(door, [""])
    with pytest.raises(BadInput):
        engine.explain_many(door, ["a"], "no event")


def test_a_foreign_key_among_them_spoils_only_its_own_answer(engine, door):
    engine.client.set(engine.keys.partition(door).instance("odd"), "x")
    odd, sound = engine.get_many(door, ["odd", "a"])
    assert isinstance(odd, EngineFault)
    assert isinstance(sound, Instance)


def test_each_is_created_as_alone_and_one_that_fails_stops_no_other(engine, door):
    made, there, odd, last = engine.create_many(door, {"c": None, "a": {}, "d": {"x": 1}, "e": {}}, actor="ann")
    assert (made, last) == (engine.get(door, "c"), engine.get(door, "e"))
    assert (type(there), type(odd)) == (InstanceExists, BadPayload)
    assert (made.state, engine.history(door, "c")[0].actor) == ("shut", "ann")
    assert engine.create_many(door, {}) == []
    with pytest.raises(UnknownMachine):
        engine.create_many("nothing", {"a": {}})


def test_messages_of_what_is_created_are_delivered(engine):
    publish(engine, machine("door", {"shut": {"on": {"ring": "open"}}, "open": {}}, accepts={"from": ["*"]}))
    engine.create("door", "front")
    ring = {"send": {"event": "ring", "to": {"machine": "door", "id": "'front'"}}}
    publish(engine, machine("bell", {"on": {"entry": [ring]}}))
    engine.create_many("bell", {"b": {}})
    assert engine.get("door", "front").state == "open"
