"""Steps that go too far: refused with a code, nothing written, and the instance goes on."""

import pytest

from machines.engine import BadPayload, EngineFault, Refused, TooMuchWork
from tests.engine.builders import NOW, fields, machine, publish, started
from tests.engine.dumps import unchanged
from tests.engine.messages.mailing import noter, told

BIG = "x" * 60_000


def loop(count, *actions):
    return {"foreach": {"in": f"range(0, {count})", "item": "i", "do": list(actions)}}


def nested(count, *actions):
    """``count`` times a thousand turns."""
    inner = {"foreach": {"in": "range(0, 1000)", "item": "j", "do": list(actions)}}
    return {"foreach": {"in": f"range(0, {count})", "item": "i", "do": [inner]}}


def spin(to):
    """It is found when it is published that this never rests, unless a guard might stop it."""
    return {"always": {"target": to, "guard": "len(instance.id) > 0"}}


def greedy(*actions, **more):
    """``go`` runs the actions; ``ok`` is what it can do at any time."""
    on = {"go": {"actions": list(actions)}, "ok": {"actions": {"set": {"n": "n + 1"}}}}
    properties = fields(
        i={"type": "integer", "default": 0},
        j={"type": "integer", "default": 0},
        n={"type": "integer", "default": 0},
        list={"type": "array", "default": []},
        text={"type": "string", "default": ""},
        big={"type": "string", "default": BIG},
        why={"type": "string", "default": ""},
    )
    states = {"A": {"on": on}, "Spin": spin("Spun"), "Spun": spin("Spin")}
    return machine("greedy", states, context=properties, **more)


def to_noter(payload=None):
    return {"send": {"event": "note", "to": {"machine": "noter", "id": "'x'"}, "data": payload or {"n": "i"}}}


TWO = {"a": "big", "b": "big"}
SIZE = "120015 bytes of JSON; 65536 are allowed"
EFFECTS = "more than 1000 effects in one step"
WORK = "the step needs more than the 250000 units of work that one may take"
TOO_MUCH = {
    "microsteps": ({"go": "Spin"}, "more than 1000 microsteps: the machine does not come to rest"),
    "raised events": (loop(1001, {"raise": "tick"}), "more than 1000 raised events wait"),
    "events sent to itself": (loop(1001, {"send": "tick"}), "more than 1000 sent events wait"),
    "emitted messages": (loop(1001, {"emit": {"type": "m", "data": {"n": "i"}}}), EFFECTS),
    "log lines": (loop(1001, {"log": "i"}), EFFECTS),
    "jobs": (loop(1001, {"enqueue": {"src": "work"}}), EFFECTS),
    "messages": (loop(1001, to_noter()), "more than 1000 messages in one step"),
    "bytes of messages": (loop(20, to_noter({"n": "big"})), "the messages of one step have at most 1048576 bytes"),
    "one message": (to_noter(TWO), f"the data of note has {SIZE}"),
    "one raised event": ({"raise": {"event": "tick", "data": TWO}}, SIZE),
    "one emitted message": ({"emit": {"type": "m", "data": TWO}}, SIZE),
    "one job": ({"enqueue": {"src": "work", "input": TWO}}, SIZE),
    "one delayed event": ({"send": {"event": "tick", "delay": 1, "data": TWO}}, SIZE),
    "turns of loops": (nested(101), WORK),
    "items of a list": ({"set": {"list": "range(0, 10001)"}}, "10000"),
    "data": ({"set": {"text": "big"}}, "the data of an instance has at most 65536 bytes"),
    "a text": ({"set": {"text": "big + big"}}, "65536 bytes"),
}


def definition_of(action, **more):
    if "go" not in action:
        return greedy(action, **more)
    definition = greedy(**more)
    definition["states"]["A"]["on"] |= action
    return definition


@pytest.mark.parametrize("what", TOO_MUCH)
def test_it_is_refused_nothing_is_written_and_the_instance_goes_on(engine, what):
    action, why = TOO_MUCH[what]
    publish(engine, noter(), "x")
    started(engine, definition_of(action))
    with unchanged(engine):
        with pytest.raises(Refused) as caught:
            engine.fire("greedy", "x", "go", now=NOW)
        exhausted = why == WORK
        assert (caught.value.code, caught.value.explanation.why) == ("SB442" if exhausted else "SB430", "error")
        assert caught.value.explanation.exhausted is exhausted
        assert why in caught.value.explanation.error
        explained = engine.explain("greedy", "x", "go", now=NOW)
        assert (explained.taken, explained.why) == (False, "error")
    assert engine.fire("greedy", "x", "ok", now=NOW).data["n"] == 1
    assert told(engine) == []


@pytest.mark.parametrize("what", ["microsteps", "turns of loops"])
def test_what_never_ends_is_refused_even_where_errors_are_events(engine, what):
    """A block of actions that fails is passed over there; the step as a whole is not."""
    action, why = TOO_MUCH[what]
    caught_by = {"error.execution": {"actions": {"set": {"why": "event.message"}}}}
    definition = definition_of(action, errors="raise")
    definition["states"]["A"]["on"] |= caught_by
    started(engine, definition)
    with unchanged(engine), pytest.raises(Refused, match=why.partition(":")[0]):
        engine.fire("greedy", "x", "go", now=NOW)
    assert engine.fire("greedy", "x", "ok", now=NOW).data["n"] == 1


@pytest.mark.parametrize("what", ["messages", "one message", "emitted messages"])
def test_what_is_too_much_for_one_block_is_an_error_event_where_errors_are_events(engine, what):
    action, why = TOO_MUCH[what]
    publish(engine, noter(), "x")
    definition = definition_of(action, errors="raise")
    definition["states"]["A"]["on"]["error.execution"] = {"actions": {"set": {"why": "event.message"}}}
    started(engine, definition)
    assert why in engine.fire("greedy", "x", "go", now=NOW).data["why"]


def test_an_event_that_answers_itself_for_ever_is_stopped(engine):
    started(engine, definition_of({"go": {"actions": {"raise": "go"}}}))
    with unchanged(engine), pytest.raises(Refused, match="more than 1000 microsteps"):
        engine.fire("greedy", "x", "go", now=NOW)


def test_so_is_one_that_is_sent_again_and_again(engine):
    started(engine, definition_of({"go": {"actions": {"send": "go"}}}))
    with unchanged(engine), pytest.raises(Refused, match="more than 1000 microsteps"):
        engine.fire("greedy", "x", "go", now=NOW)


def test_events_nobody_listens_to_are_counted_too(engine):
    """Each turn leaves twenty behind that lead to nothing, and one that begins the next."""
    twenty = [{"send": f"nothing{n}"} for n in range(20)]
    started(engine, definition_of({"go": {"actions": [*twenty, {"raise": "go"}]}}))
    with unchanged(engine), pytest.raises(Refused, match="more than 1000 sent events wait"):
        engine.fire("greedy", "x", "go", now=NOW)
    started(engine, definition_of({"go": {"actions": [*twenty, {"send": "go"}]}}) | {"id": "other"})
    with unchanged(engine), pytest.raises(TooMuchWork, match=WORK):
        engine.fire("other", "x", "go", now=NOW)


def test_a_step_of_too_much_work_is_stopped_and_the_same_on_every_run(engine):
    started(engine, greedy(nested(100, {"append": {"list": "j"}})))
    for _ in range(2):
        with unchanged(engine), pytest.raises(TooMuchWork, match=WORK):
            engine.fire("greedy", "x", "go", now=NOW)
    assert engine.fire("greedy", "x", "ok", now=NOW).data["n"] == 1


def test_a_timer_whose_step_goes_too_far_is_put_off_and_holds_up_no_other(engine):
    states = {"A": {"after": {"1s": "B"}, "on": {"out": "D"}}, "B": spin("C"), "C": spin("B"), "D": {}}
    publish(engine, machine("spin", states), "x")
    publish(engine, machine("fine", {"A": {"after": {"1s": "B"}}, "B": {}}), "x")
    assert engine.drive(["spin", "fine"], now=NOW + 1_000).moved == 1
    assert (engine.get("spin", "x").state, engine.get("fine", "x").state) == ("A", "B")
    assert engine.live("spin").overdue == 1
    assert engine.fire("spin", "x", "out", now=NOW).state == "D"
    assert engine.live("spin").overdue == 0


def test_a_message_whose_step_goes_too_far_is_told_to_its_sender(engine):
    definition = greedy() | {"accepts": {"from": ["s"]}}
    definition["states"]["A"]["on"]["note"] = "Spin"
    publish(engine, definition, "x")
    send = {"send": {"event": "note", "to": {"machine": "greedy", "id": "'x'"}}}
    heard = {"actions": {"set": {"why": "event.message"}}}
    publish(
        engine,
        machine("s", {"A": {"on": {"go": {"actions": send}, "error.communication": heard}}}, context={"why": ""}),
        "s",
    )
    engine.fire("s", "s", "go")
    assert engine.get("s", "s").data["why"].startswith("more than 1000 microsteps")
    assert engine.get("greedy", "x").state == "A"


def test_an_instance_whose_beginning_goes_too_far_is_not_made(engine):
    publish(engine, machine("spin", {"A": spin("B"), "B": spin("A")}))
    with unchanged(engine), pytest.raises(Refused, match="more than 1000 microsteps"):
        engine.create("spin", "x")


def test_a_payload_and_the_data_of_a_new_instance_have_a_size(engine):
    publish(engine, greedy())
    with unchanged(engine):
        with pytest.raises(BadPayload) as caught:
            engine.create("greedy", "y", {"text": BIG, "big": BIG})
        assert caught.value.code == "SB411"
    engine.create("greedy", "x")
    with unchanged(engine):
        with pytest.raises(BadPayload) as caught:
            engine.fire("greedy", "x", "ok", {"a": BIG, "b": BIG})
        assert caught.value.code == "SB411"


def test_data_of_a_new_instance_that_only_grows_too_large_by_its_defaults_is_refused_too(engine):
    publish(engine, greedy())
    with unchanged(engine), pytest.raises(Refused, match="the data of an instance has at most 65536 bytes"):
        engine.create("greedy", "x", {"text": BIG})


def test_done_data_have_a_size(engine):
    final = {"type": "final", "output": {"a": "big", "b": "big"}}
    definition = greedy()
    definition["states"]["Z"] = final
    definition["states"]["A"]["on"]["go"] = "Z"
    started(engine, definition)
    with unchanged(engine), pytest.raises(Refused, match="the done data has 120015 bytes"):
        engine.fire("greedy", "x", "go", now=NOW)


def test_the_input_of_a_child_has_a_size(engine):
    publish(engine, noter("child"))
    definition = greedy()
    definition["states"]["B"] = {"invoke": {"src": "machine:child", "id": "k", "input": {"a": "big", "b": "big"}}}
    definition["states"]["A"]["on"]["go"] = "B"
    started(engine, definition)
    with unchanged(engine), pytest.raises(Refused, match="the input of k has 120015 bytes"):
        engine.fire("greedy", "x", "go", now=NOW)


def test_a_call_that_is_no_message_is_refused_as_a_whole(engine):
    """What the engine itself never sends."""
    publish(engine, noter(), "x")
    root = engine.keys.partition("noter").root
    for words in [
        (),
        ("s",),
        ("s", "1-1", "", ""),
        ("s", "x", "", "", "1-1", "event", "x", "{}"),
        ("s", "1-1", "", "", "1-1", "event"),
    ]:
        with unchanged(engine):
            assert engine.client.fcall("sb_deliver", 1, root, *words)[0] == "BADARG"


def test_an_unreadable_outbox_is_a_fault_and_nothing_is_changed(engine):
    publish(engine, noter(), "x")
    publish(engine, greedy(to_noter()), "g")
    key = engine.keys.partition("greedy").outbox
    engine.client.set(key, "foreign")
    with unchanged(engine), pytest.raises(EngineFault):
        engine.fire("greedy", "g", "go", now=NOW)
