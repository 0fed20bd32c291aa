"""A pinned version stays current; a pinned instance stays in its version."""

import pytest

from machines.engine import BadInput, Conflict, PlanError, UnknownInstance, UnknownMachine, VersionRefused
from tests.engine.builders import NOW, counter, door

ONE, TWO, THREE = (door(description=f"version {n}") for n in (1, 2, 3))


def test_a_pinned_version_stays_current_whatever_is_published(engine):
    engine.publish(ONE)
    engine.publish(TWO)
    pin = engine.pin("door", 1, actor="ann", reason="release week")
    assert (pin.version, pin.next, pin.actor) == (1, 2, "ann")
    assert engine.create("door", "a").version == 1
    assert engine.publish(THREE).version == 3
    assert engine.publish(THREE).created is False
    assert engine.machines() == {"door": 1}
    assert engine.create("door", "b").version == 1
    assert engine.create("door", "c", version=3).version == 3
    assert engine.pin("door", None) is None
    assert engine.machines() == {"door": 3}
    assert engine.create("door", "d").version == 3


def test_a_pin_is_changed_and_taken_off(engine):
    for definition in (ONE, TWO, THREE):
        engine.publish(definition)
    engine.pin("door", 1)
    assert engine.pin("door", 2).next == 3
    assert engine.machines() == {"door": 2}
    engine.pin("door", None)
    assert engine.pin("door", None) is None, "twice is no error"
    assert engine.machines() == {"door": 3}


def test_a_pin_and_a_roll_out_exclude_each_other(engine):
    engine.publish(ONE)
    engine.publish(TWO, rollout=5)
    with pytest.raises(VersionRefused) as caught:
        engine.pin("door", 1)
    assert caught.value.code == "SB627"
    engine.stop_rollout("door")
    engine.pin("door", 1)
    with pytest.raises(VersionRefused) as caught:
        engine.publish(THREE, rollout=5)
    assert caught.value.code == "SB627"
    assert engine.versions("door") == [1, 2]
    with pytest.raises(UnknownMachine):
        engine.pin("door", 9)
    with pytest.raises(BadInput):
        engine.pin("door", 0)


def test_a_pinned_instance_says_so_and_its_history_has_it(engine):
    engine.publish(ONE)
    engine.create("door", "a", now=NOW)
    pinned = engine.pin_instance("door", "a", actor="ann", reason="audit", expect=1)
    assert pinned.pinned
    assert pinned.revision == 2
    assert engine.get("door", "a").as_dict()["pinned"] is True
    (step, _) = engine.history("door", "a")
    assert (step.event, step.actor, step.reason) == ("(pin)", "ann", "audit")
    assert engine.pin_instance("door", "a", actor="bob", reason="again").revision == 2, "no second step"
    assert engine.fire("door", "a", "open").pinned
    freed = engine.pin_instance("door", "a", False, actor="ann", reason="done")
    assert not freed.pinned
    assert engine.history("door", "a")[0].event == "(unpin)"
    assert "pinned" not in freed.as_dict()


def test_a_pin_has_the_errors_of_other_repairs(engine):
    engine.publish(ONE)
    engine.create("door", "a", now=NOW)
    with pytest.raises(BadInput):
        engine.pin_instance("door", "a", actor="ann", reason="")
    with pytest.raises(Conflict):
        engine.pin_instance("door", "a", actor="ann", reason="x", expect=7)
    with pytest.raises(UnknownInstance):
        engine.pin_instance("door", "b", actor="ann", reason="x")
    first = engine.pin_instance("door", "a", actor="ann", reason="x", key="k")
    assert engine.pin_instance("door", "a", actor="ann", reason="x", key="k").revision == first.revision == 2


def test_a_finished_instance_may_be_pinned(engine):
    engine.publish(counter())
    engine.create("counter", "a", now=NOW)
    engine.fire("counter", "a", "stop", now=NOW)
    assert engine.pin_instance("counter", "a", actor="ann", reason="x").pinned


def codes(engine, plan):
    try:
        return {each.code for each in engine.migrate(plan).refused}
    except PlanError as error:
        return {error.code}


def test_plans_leave_what_is_pinned_and_lead_to_no_withdrawn_version(engine):
    engine.publish(ONE)
    for id in "abc":
        engine.create("door", id, now=NOW)
    engine.publish(TWO)
    engine.pin_instance("door", "a", actor="ann", reason="audit")
    plan = engine.plan("door", 2)
    engine.withdraw_version("door", 2, instead=1)
    assert codes(engine, plan) == {"SB612"}
    engine.withdraw_version("door", 2, False)
    engine.pin("door", 1)
    assert codes(engine, plan) == {"SB631"}
    engine.pin("door", None)
    done = engine.migrate(plan)
    assert done.moved == 2
    assert [(each.id, each.code) for each in done.refused] == [("a", "SB631")]
    assert {each.version: each.instances for each in engine.version_figures("door")} == {1: 1, 2: 2}
