"""Messages from instance to instance: how they arrive, and what comes back when they cannot."""

import pytest

from machines.engine import Refused
from tests.engine.builders import machine, publish
from tests.engine.dumps import unchanged

from .mailing import corrupt, deaf, deliver, in_minutes, lost, mend, noter, oldest, post, teller, told, waiting

# The way of a message


def test_it_arrives_with_the_call_that_sent_it(pair):
    assert pair.fire("teller", "t", "tell", {"id": "x", "n": 7}).revision == 2
    assert (told(pair), waiting(pair)) == ([7], 0)


def test_its_step_says_who_sent_it_and_what(pair):
    pair.fire("teller", "t", "tell", {"id": "x", "n": 7})
    step = pair.history("noter", "x")[0]
    assert (step.event, step.actor, step.payload) == ("note", "teller/t", {"n": 7})


def test_it_knows_where_it_came_from(engine):
    facts = {"actions": {"append": {"got": "[trigger.type, trigger.origin, trigger.sendid]"}}}
    publish(engine, noter(note=facts), "x")
    publish(engine, teller(), "t")
    engine.fire("teller", "t", "tell", {"id": "x", "n": 7})
    assert told(engine) == [["external", "#_scxml_teller/t", "s1"]]


def test_whoever_ticks_delivers_what_was_left(pair):
    post(pair, "x", 7)
    assert (told(pair), waiting(pair), pair.live("teller").mail) == ([], 1, 1)
    assert pair.tick("teller") == 1
    assert (told(pair), waiting(pair)) == ([7], 0)
    assert pair.tick() == 0


def test_an_answer_can_be_answered(engine):
    states = {
        "A": {
            "on": {"hit": {"actions": {"send": {"event": "hit", "to": "trigger.origin", "data": {"n": "event.n + 1"}}}}}
        }
    }
    on = {
        "hit": {
            "guard": "event.n < 6",
            "actions": [{"append": {"got": "event.n"}}, states["A"]["on"]["hit"]["actions"]],
        }
    }
    publish(engine, noter("left", **on), "l")
    publish(engine, machine("right", states), "r")
    start = {"actions": {"send": {"event": "hit", "to": {"machine": "left", "id": "'l'"}, "data": {"n": "0"}}}}
    publish(engine, machine("umpire", {"A": {"on": {"go": start}}}), "u")
    states_of_umpire = engine.fire("umpire", "u", "go")
    assert states_of_umpire.revision == 2
    assert told(engine, "l", "left") == [0], "the umpire has no ear for it"


def test_two_that_answer_each_other_for_ever_hold_up_nobody(engine):
    """A call that fires carries on for a few rounds, a tick for some more; the rest is for the next."""
    send = {"event": "hit", "to": {"machine": "pong", "id": "event.to"}, "data": {"to": "instance.id"}}
    on = {"hit": {"actions": [{"set": {"n": "n + 1"}}, {"send": send}]}}
    publish(engine, machine("pong", {"A": {"on": on}}, context={"n": 0}), "a", "b")
    engine.fire("pong", "a", "hit", {"to": "b"})
    first = engine.get("pong", "a").data["n"] + engine.get("pong", "b").data["n"]
    assert first < 20
    engine.tick("pong")
    assert first < engine.get("pong", "a").data["n"] + engine.get("pong", "b").data["n"] < 200
    assert waiting(engine, "pong") == 1


def test_a_step_that_is_refused_sends_nothing(engine):
    publish(engine, noter(), "x")
    send = {"send": {"event": "note", "to": {"machine": "noter", "id": "'x'"}}}
    publish(
        engine,
        machine("bad", {"A": {"on": {"go": {"actions": [send, {"set": {"n": "1 / n"}}]}}}}, context={"n": 0}),
        "b",
    )
    with unchanged(engine), pytest.raises(Refused):
        engine.fire("bad", "b", "go")


def test_many_at_once_arrive_in_order(pair):
    pair.fire("teller", "t", "burst", {"id": "x", "n": 500})
    assert len(told(pair)) < 500, "the caller has other things to do than to carry all of them"
    while pair.tick():
        pass
    assert (told(pair), waiting(pair)) == (list(range(500)), 0)


def test_one_that_nobody_listens_to_is_over(pair):
    publish(pair, teller("mumbler", event="whatever"), "m")
    pair.fire("mumbler", "m", "tell", {"id": "x", "n": 1})
    assert (waiting(pair, "mumbler"), lost(pair, "m", "mumbler")) == (0, [])


def test_one_to_itself_by_name_needs_no_post(engine):
    send = {"event": "note", "to": {"machine": "noter", "id": "instance.id"}, "data": {"n": "1"}}
    publish(engine, noter(go={"actions": {"send": send}}), "x")
    assert engine.fire("noter", "x", "go").data["got"] == [1]
    assert waiting(engine, "noter") == 0


def test_a_delayed_one_leaves_when_its_time_has_come(engine):
    publish(engine, noter(), "x")
    send = {"event": "note", "to": {"machine": "noter", "id": "'x'"}, "data": {"n": "1"}, "delay": "5s"}
    now = in_minutes(0)
    publish(engine, machine("slow", {"A": {"entry": {"send": send}}}), "s", now=now)
    assert engine.tick(now=now + 4_999) == 0
    assert engine.tick(now=now + 5_000) == 2, "the timer, and the message"
    assert told(engine) == [1]


def test_a_message_takes_the_callers_clock_along(engine):
    """What a receiver begins by it happens at the moment the test, or the simulation, is in."""
    states = {"A": {"on": {"note": "B"}}, "B": {"after": {"1s": "A"}}}
    publish(engine, machine("sleeper", states, accepts={"from": ["teller"]}), "x")
    publish(engine, teller(to="sleeper"), "t")
    engine.fire("teller", "t", "tell", {"id": "x", "n": 1}, now=5_000)
    (timer,) = engine.get("sleeper", "x").timers
    assert timer.due == 6_000


# What comes back


def test_nobody_there_is_told_to_the_sender_once(pair):
    pair.fire("teller", "t", "tell", {"id": "nobody", "n": 1})
    assert lost(pair) == ["there is no instance nobody"]
    assert pair.get("teller", "t").data["ids"] == ["s1"]
    assert (pair.tick(), len(lost(pair)), waiting(pair)) == (0, 1, 0)


def test_an_unknown_machine_is_told_to_the_sender_once(engine):
    publish(engine, teller(to="ghost"), "t")
    engine.fire("teller", "t", "tell", {"id": "x", "n": 1})
    assert lost(engine) == ["no machine 'ghost' is published"]
    assert (engine.tick(), len(lost(engine)), waiting(engine)) == (0, 1, 0)


def test_what_the_receiver_cannot_take_is_told_to_the_sender(engine):
    publish(engine, noter() | {"events": {"note": {"payload": {"n": {"type": "string"}}}}}, "x")
    publish(engine, teller(), "t")
    engine.fire("teller", "t", "tell", {"id": "x", "n": 1})
    assert lost(engine) == ["field 'n' of event 'note' takes string, not number"]


def test_a_step_of_the_receiver_that_fails_is_told_to_the_sender(engine):
    publish(engine, noter(note={"actions": {"append": {"got": "1 / event.n"}}}), "x")
    publish(engine, teller(), "t")
    engine.fire("teller", "t", "tell", {"id": "x", "n": 0})
    assert lost(engine) == ["division by zero"]
    assert told(engine) == []


def test_a_sender_without_an_ear_for_it_finds_it_in_the_log(engine):
    publish(engine, teller(to="ghost"), "t")
    publish(engine, deaf(to="ghost"), "d")
    engine.fire("deaf", "d", "tell", {"id": "x", "n": 1})
    ((_, entry),) = engine.client.xrange(engine.keys.partition("deaf").log)
    assert (entry["kind"], entry["name"], entry["instance"]) == ("message", "undelivered", "d")
    assert "ghost" in entry["data"]
    assert (engine.get("deaf", "d").revision, waiting(engine, "deaf")) == (2, 0)


def test_a_sender_that_is_gone_is_told_nothing(pair):
    post(pair, "nobody", 1)
    pair.delete("teller", "t")
    assert pair.tick() == 1
    assert waiting(pair) == 0


def test_a_sender_that_cannot_take_even_that_is_told_once_and_no_more(engine):
    definition = teller(to="ghost")
    definition["states"]["A"]["on"]["error.communication"] = {"actions": {"set": {"n": "1 / n"}}}
    publish(engine, definition, "t")
    engine.fire("teller", "t", "tell", {"id": "x", "n": 1})
    assert [step.event for step in engine.history("teller", "t")] == ["error.communication", "tell", "(create)"]
    assert (lost(engine), waiting(engine), engine.tick()) == ([], 0, 0)


def test_a_suspended_sender_is_told_when_it_goes_on(pair):
    post(pair, "nobody", 1)
    pair.suspend("teller", "t", actor="a", reason="r")
    pair.tick()
    assert lost(pair) == []
    assert pair.resume("teller", "t", actor="a", reason="r").data["lost"] == ["there is no instance nobody"]


def test_a_sender_that_cannot_be_written_is_told_when_it_can(pair):
    """The answer to a message that failed is a message itself then."""
    post(pair, "nobody", 1)
    corrupt(pair, "t", "teller")
    pair.tick()
    assert waiting(pair) == 1
    mend(pair, "t", "teller")
    pair.tick()
    assert (lost(pair), waiting(pair)) == (["there is no instance nobody"], 0)


def test_a_deleted_instances_last_words_are_delivered(pair):
    post(pair, "x", 7)
    pair.delete("teller", "t")
    pair.tick()
    assert told(pair) == [7]


def test_a_deleted_receiver_is_nobody(pair):
    post(pair, "x", 7)
    pair.delete("noter", "x")
    pair.tick()
    assert lost(pair) == ["there is no instance x"]


def test_an_instance_made_after_the_message_was_sent_gets_it(pair):
    post(pair, "late", 7)
    pair.create("noter", "late")
    pair.tick()
    assert (told(pair, "late"), lost(pair)) == ([7], [])


def test_what_failed_stays_failed_though_it_comes_again(pair):
    """Of two that deliver, one may come before the instance is there and one after: both have to say the same."""
    post(pair, "late", 7)
    args = oldest(pair)
    assert deliver(pair, *args)[2:] == ["failed", "there is no instance late"]
    pair.create("noter", "late")
    assert deliver(pair, *args)[2] == "failed"
    pair.tick()
    assert (told(pair, "late"), len(lost(pair))) == ([], 1)


BAD_ADDRESSES = [
    {"machine": "two words", "id": "x"},
    {"machine": "", "id": "x"},
    {"machine": "m" * 65, "id": "x"},
    {"machine": "noter", "id": ""},
    {"machine": "noter", "id": "  "},
    {"machine": "noter", "id": "a\nb"},
    {"machine": "noter", "id": "x" * 201},
    {"machine": "noter", "id": 1},
    {"machine": "noter"},
    "nowhere",
    "#_scxml_no ter/x",
    7,
]


@pytest.mark.parametrize("to", BAD_ADDRESSES)
def test_an_address_that_can_be_nobodys_refuses_the_step(engine, to):
    publish(engine, noter(), "x")
    publish(
        engine, machine("lost", {"A": {"on": {"go": {"actions": {"send": {"event": "note", "to": "event.to"}}}}}}), "l"
    )
    with unchanged(engine), pytest.raises(Refused):
        engine.fire("lost", "l", "go", {"to": to})
    engine.fire("lost", "l", "go", {"to": {"machine": "noter", "id": "x"}})
    assert len(told(engine)) == 1


@pytest.mark.parametrize("name", ["", "two words", "x" * 401, "a\nb", "after.t1", 7])
def test_a_computed_name_that_no_event_has_refuses_the_step(engine, name):
    send = {"event": {"expr": "event.name"}, "to": {"machine": "noter", "id": "'x'"}}
    publish(engine, machine("odd", {"A": {"on": {"go": {"actions": {"send": send}}}}}), "o")
    with unchanged(engine), pytest.raises(Refused):
        engine.fire("odd", "o", "go", {"name": name})
