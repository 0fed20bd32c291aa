"""Machines that invoke machines: a child lives as long as the state that began it, and tells how it ended."""

import pytest

from machines.engine import Refused, Suspended, UnknownInstance
from tests.engine.builders import machine, publish, started
from tests.engine.dumps import unchanged
from tests.engine.families import WHO, child, only, parent, tell


@pytest.fixture
def family(engine):
    """A parent ``p`` that has started its child."""
    publish(engine, child())
    publish(engine, parent(input={"n": "start"}), "p")
    engine.fire("parent", "p", "start")
    return engine


# Beginning and ending


def test_a_state_that_is_entered_starts_a_child_with_its_input(family):
    made = only(family)
    assert (made.state, made.data, made.revision) == ("A", {"n": 5}, 1)
    assert family.get("parent", "p").children == {"k": {"machine": "child", "id": made.id}}


def test_the_child_knows_its_parent(family):
    assert only(family).parent == {"machine": "parent", "id": "p", "invoke": "k"}


def test_the_childs_first_step_says_who_asked_for_it(family):
    (step,) = family.history("child", only(family).id)
    assert (step.event, step.actor) == ("(create)", "parent/p")


def test_its_done_data_come_back_with_the_event(family):
    tell(family, "hit")
    tell(family, "end")
    after = family.get("parent", "p")
    assert (after.state, after.data["got"], after.children) == ("Done", 12, {})
    assert family.history("parent", "p")[0].payload == {"twice": 12}
    assert (only(family).state, only(family).done) == ("Z", True)


def test_a_child_that_finishes_at_once_is_done_at_once(engine):
    publish(engine, machine("child", {"Z": {"type": "final", "output": {"twice": "7"}}}))
    publish(engine, parent(), "p")
    engine.fire("parent", "p", "start")
    assert (engine.get("parent", "p").state, engine.get("parent", "p").data["got"]) == ("Done", 7)


def test_entered_again_it_starts_another_one(family):
    first = only(family).id
    tell(family, "end")
    again = family.fire("parent", "p", "start").children["k"]["id"]
    assert again != first
    assert family.counts("child") == {"A": 1, "Z": 1}


def test_a_state_that_is_left_ends_its_child(family):
    id = only(family).id
    assert family.fire("parent", "p", "quit").children == {}
    with pytest.raises(UnknownInstance):
        family.get("child", id)
    assert (family.counts("child"), family.live("child").total) == ({"A": 0, "Z": 0}, 0)


def test_leaving_takes_along_what_the_child_had_begun(engine):
    busy = {"entry": {"send": {"event": "x", "delay": "1h"}}, "after": {"1h": "A"}, "invoke": {"src": "work"}}
    publish(engine, child(A=busy))
    publish(engine, parent(), "p")
    engine.fire("parent", "p", "start")
    assert (engine.live("child").timers, engine.queues("child")["work"]["ready"]) == (2, 1)
    engine.fire("parent", "p", "quit")
    assert (engine.live("child").timers, engine.queues("child")["work"]["ready"]) == (0, 0)


def test_exit_actions_of_a_child_that_is_stopped_may_still_send(engine):
    bye = {"exit": {"send": {"event": "said", "to": {"machine": "parent", "id": "'other'"}, "data": {"n": "n"}}}}
    publish(engine, child(A=bye))
    publish(engine, parent() | {"accepts": {"from": ["child"]}}, "p", "other")
    for id in ("p", "other"):
        engine.fire("parent", id, "start")
    engine.fire("parent", "p", "quit")
    assert engine.get("parent", "other").data["heard"] == [0]


def test_a_parent_that_finishes_ends_its_children(engine):
    publish(engine, child())
    states = {"A": {"invoke": {"src": "machine:child"}, "on": {"end": "Z"}}, "Z": {"type": "final"}}
    started(engine, machine("short", states))
    assert engine.live("child").total == 1
    engine.fire("short", "x", "end")
    assert engine.live("child").total == 0


def test_a_parent_that_is_deleted_ends_its_children(family):
    family.delete("parent", "p")
    assert family.live("child").total == 0


def test_a_parent_that_is_forced_elsewhere_ends_its_child(family):
    assert family.force("parent", "p", "Idle", **WHO).children == {}
    assert family.live("child").total == 0
    family.force("parent", "p", "Busy", **WHO)
    assert family.live("child").total == 1


def test_a_child_that_is_deleted_by_hand_is_an_error_of_the_invocation(family):
    family.delete("child", only(family).id, **WHO)
    after = family.get("parent", "p")
    assert (after.state, after.data["why"], after.children) == ("Failed", "the instance was deleted", {})


def test_a_finished_child_may_be_deleted_in_silence(family):
    tell(family, "end")
    family.delete("child", only(family).id)
    assert family.get("parent", "p").state == "Done"


def test_grandchildren_end_with_the_child(engine):
    publish(engine, child())
    middle = {"A": {"invoke": {"src": "machine:child"}}}
    publish(engine, machine("middle", middle))
    publish(engine, parent(src="machine:middle"), "p")
    engine.fire("parent", "p", "start")
    assert only(engine).parent["machine"] == "middle"
    engine.fire("parent", "p", "quit")
    assert (engine.live("middle").total, engine.live("child").total) == (0, 0)


def test_two_invokes_of_one_state_are_two_children(engine):
    publish(engine, child())
    both = [{"src": "machine:child", "id": "a"}, {"src": "machine:child", "id": "b"}]
    assert sorted(started(engine, machine("twins", {"A": {"invoke": both}})).children) == ["a", "b"]
    assert engine.live("child").total == 2


def test_regions_have_children_of_their_own(engine):
    publish(engine, child())
    region = {"initial": "a", "states": {"a": {"invoke": {"src": "machine:child"}, "on": {"next": "b"}}, "b": {}}}
    other = {"initial": "c", "states": {"c": {"invoke": {"src": "machine:child"}}}}
    definition = machine("both", {"P": {"type": "parallel", "states": {"L": region, "R": other}}})
    assert len(started(engine, definition).children) == 2
    assert len(engine.fire("both", "x", "next").children) == 1
    assert engine.live("child").total == 1


def test_the_machine_may_be_named_by_the_data(engine):
    for name in ("one", "two"):
        publish(engine, child(name) | {"accepts": {"from": ["chooser"]}})
    states = {"A": {"on": {"go": "B"}}, "B": {"invoke": {"src": {"expr": "which"}}}}
    started(engine, machine("chooser", states, context={"which": "two"}))
    assert engine.fire("chooser", "x", "go").children["B"]["machine"] == "two"
    assert (engine.live("one").total, engine.live("two").total) == (0, 1)


# Talking


def test_parent_and_child_send_each_other_events(family):
    tell(family, "hit")
    tell(family, "say")
    assert family.get("parent", "p").data["heard"] == [6]


def test_the_childs_events_say_which_invocation_they_belong_to(engine):
    publish(engine, child())
    publish(engine, parent(), "p")
    definition = parent("curious")
    said = {
        "actions": {
            "append": {"heard": "[trigger.invokeid, trigger.type, trigger.origin == '#_scxml_child/' + event.id]"}
        }
    }
    definition["states"]["Busy"]["on"]["said"] = said
    publish(engine, definition, "c")
    publish(engine, child(A={"entry": {"send": {"event": "said", "to": "'#_parent'", "data": {"id": "instance.id"}}}}))
    engine.fire("curious", "c", "start")
    assert engine.get("curious", "c").data["heard"] == [["k", "external", True]]


def test_what_a_child_sent_before_its_state_was_left_is_not_heard_after(family):
    root = family.keys.partition("child").root
    family.client.fcall("sb_fire", 1, root, only(family).id, "say", "", "", "", "", "", "")
    family.fire("parent", "p", "quit")
    family.fire("parent", "p", "start")
    family.tick()
    assert family.get("parent", "p").data["heard"] == []


def test_what_a_child_sent_is_not_taken_for_the_word_of_the_one_after_it(family):
    fire = family.client.fcall
    fire("sb_fire", 1, family.keys.partition("child").root, only(family).id, "say", "", "", "", "", "", "")
    for event in ("quit", "start"):
        fire("sb_fire", 1, family.keys.partition("parent").root, "p", event, "", "", "", "", "", "")
    family.tick()
    assert family.get("parent", "p").children["k"]
    assert family.get("parent", "p").data["heard"] == []


def test_a_parent_that_is_not_there_is_an_error_of_communication(engine):
    on = {"go": {"actions": {"send": {"event": "x", "to": "'#_parent'"}}}, "error.communication": "B"}
    started(engine, machine("orphan", {"A": {"on": on}, "B": {}}))
    assert engine.fire("orphan", "x", "go").state == "B"


def test_autoforward_hands_every_event_from_outside_on(engine):
    publish(engine, child())
    definition = parent(autoforward=True)
    definition["states"]["Busy"]["on"]["hit"] = {"actions": {"log": "'hit'"}}
    publish(engine, definition, "p")
    engine.fire("parent", "p", "start")
    engine.fire("parent", "p", "hit")
    engine.fire("parent", "p", "hit")
    assert only(engine).data == {"n": 2}


def test_finalize_runs_before_the_childs_event_is_looked_at(engine):
    publish(engine, child())
    definition = parent(finalize=[{"set": {"got": "event.n"}}])
    definition["states"]["Busy"]["on"]["said"] = {"guard": "got == 5", "actions": {"append": {"heard": "got"}}}
    publish(engine, definition | {"id": "parent"}, "p")
    engine.fire("parent", "p", "start")
    for _ in range(5):
        tell(engine, "hit")
    tell(engine, "say")
    assert engine.get("parent", "p").data["heard"] == [5]


# Suspended


def test_what_a_child_says_and_how_it_ends_waits_for_a_suspended_parent(family):
    family.suspend("parent", "p", **WHO)
    for event in ("say", "hit", "say", "end"):
        family.fire("child", only(family).id, event)
    assert family.get("parent", "p").state == "Busy"
    after = family.resume("parent", "p", **WHO)
    assert (after.state, after.data["heard"], after.data["got"], after.children) == ("Done", [5, 6], 12, {})


def test_a_beginning_that_fails_waits_for_it_too(engine):
    publish(engine, parent(), "p")
    root = engine.keys.partition("parent").root
    engine.client.fcall("sb_fire", 1, root, "p", "start", "", "", "", "", "", "")
    engine.suspend("parent", "p", **WHO)
    engine.tick()
    assert engine.get("parent", "p").state == "Busy"
    after = engine.resume("parent", "p", **WHO)
    assert (after.state, after.children) == ("Failed", {})


def test_a_suspended_child_ends_with_the_state_all_the_same(family):
    id = only(family).id
    family.suspend("child", id, **WHO)
    tell(family, "hit")
    with pytest.raises(Suspended):
        family.fire("child", id, "end")
    family.fire("parent", "p", "quit")
    assert family.live("child").total == 0
    assert not family.client.exists(family.keys.partition("child").held(id))


def test_a_step_that_is_refused_starts_and_ends_no_child(engine):
    publish(engine, child())
    definition = parent()
    definition["states"]["Idle"]["on"]["bad"] = {"target": "Busy", "actions": {"set": {"got": "1 / 0"}}}
    definition["states"]["Busy"]["on"]["bad"] = {"target": "Idle", "actions": {"set": {"got": "1 / 0"}}}
    publish(engine, definition, "p")
    for total in (0, 1):
        with unchanged(engine), pytest.raises(Refused):
            engine.fire("parent", "p", "bad")
        assert engine.live("child").total == total
        engine.force("parent", "p", "Busy", **WHO)
