"""fire: one event, one step, and nothing in between."""

import pytest

from machines.engine import (
    BadInput,
    BadPayload,
    Conflict,
    Instance,
    Refused,
    UnknownEvent,
    UnknownInstance,
    UnknownMachine,
)
from tests.cases import for_each
from tests.engine.builders import NOW, counter, door, errand, fields, machine, publish, started

from .racing import in_processes, in_threads, kinds


def test_the_answer_is_the_instance_as_it_now_is(engine):
    started(engine, door())
    fired = engine.fire("door", "x", "open", now=NOW + 5)
    assert fired == Instance(
        id="x",
        machine="door",
        configuration=["Open"],
        data={},
        revision=2,
        version=1,
        entered=NOW + 5,
        created=NOW,
        outcome=fired.outcome,
    )
    assert (fired.outcome.transitions, fired.outcome.replayed) == (["t1"], False)
    held = engine.get("door", "x")
    assert (held.state, held.revision, held.entered, held.created) == ("Open", 2, NOW + 5, NOW)


def test_the_same_event_again_in_the_wrong_state_is_refused(engine):
    started(engine, door())
    engine.fire("door", "x", "open")
    with pytest.raises(Refused) as caught:
        engine.fire("door", "x", "open")
    assert caught.value.explanation.why == "no transition"
    assert str(caught.value) == "event 'open' is refused in state Open: no transition accepts it"


def test_a_guard_that_does_not_hold_is_explained_with_its_values(engine):
    started(engine, counter(), data={"n": 3})
    with pytest.raises(Refused) as caught:
        engine.fire("counter", "x", "add")
    assert str(caught.value) == "event 'add' is refused in state On: t1 (stays): n < 3 is false: n = 3"
    assert [c.verdict for c in caught.value.candidates] == ["guard"]


def test_nothing_more_happens_in_a_final_state(engine):
    started(engine, counter())
    assert engine.fire("counter", "x", "stop").done
    with pytest.raises(Refused, match="the state is final"):
        engine.fire("counter", "x", "add")


def test_an_event_no_transition_knows_is_told_apart(engine):
    started(engine, door())
    with pytest.raises(UnknownEvent, match="machine 'door' has no event 'opne'; its events: close, open"):
        engine.fire("door", "x", "opne")


def test_a_wildcard_listens_for_what_nothing_else_takes(engine):
    on = {"door.open": "Open", "door.*": "Some", "*": "Any"}
    started(engine, machine("m", {"Shut": {"on": on}, "Open": {}, "Some": {}, "Any": {}}))
    for event, state in [("door.open", "Open"), ("door.close", "Some"), ("door", "Some"), ("doors", "Any")]:
        engine.force("m", "x", "Shut", actor="a", reason="again")
        assert engine.fire("m", "x", event).state == state, event


def test_a_prefix_matches_at_dots_only(engine):
    started(engine, machine("m", {"Shut": {"on": {"door": "Open"}}, "Open": {}}))
    assert engine.fire("m", "x", "door.front.open").state == "Open"
    engine.force("m", "x", "Shut", actor="a", reason="again")
    with pytest.raises(Refused):
        engine.fire("m", "x", "doors")


def test_unknown_machines_and_instances_are_named(engine):
    publish(engine, door())
    with pytest.raises(UnknownInstance, match="machine 'door' has no instance 'y'"):
        engine.fire("door", "y", "open")
    with pytest.raises(UnknownMachine, match="no machine 'gate' is published") as caught:
        engine.fire("gate", "y", "open")
    assert (str(caught.value), caught.value.known) == ("no machine 'gate' is published", ("door",))


@pytest.mark.parametrize("event", ["done.invoke.work", "error.invoke.work", "done.", "error.x"])
def test_the_engines_own_events_cannot_be_fired(engine, event):
    started(engine, errand())
    engine.fire("errand", "x", "start")
    with pytest.raises(BadInput, match="the engine's own"):
        engine.fire("errand", "x", event)


def test_nor_by_a_program_that_calls_the_function_itself(engine):
    started(engine, errand())
    engine.fire("errand", "x", "start")
    root = engine.keys.partition("errand").root
    assert engine.client.fcall("sb_fire", 1, root, "x", "done.invoke.work")[0] == "BADARG"
    assert engine.client.fcall("sb_fire", 1, root, "x", "x" * 401)[0] == "BADARG"
    assert engine.client.fcall("sb_fire", 1, root, "x")[0] == "BADARG"


def test_expect_lets_the_version_it_names_through_and_no_other(engine):
    first = started(engine, door())
    second = engine.fire("door", "x", "open", expect=first.revision)
    with pytest.raises(Conflict) as caught:
        engine.fire("door", "x", "close", expect=first.revision)
    assert (caught.value.expected, caught.value.actual) == (1, 2)
    assert engine.fire("door", "x", "close", expect=second.revision).revision == 3


def test_a_conflict_is_told_before_the_payload_is_looked_at(engine):
    started(engine, door(events={"open": {"payload": {}}}))
    with pytest.raises(Conflict):
        engine.fire("door", "x", "open", {"speed": 3}, expect=9)


def test_expect_that_is_no_version_is_bad_input(engine):
    started(engine, door())

    @for_each("expect", ["1", 1.0, True, -1, 2**53, [1]])
    def check(expect):
        with pytest.raises(BadInput, match="expect is a whole number"):
            engine.fire("door", "x", "open", expect=expect)

    check()


def test_of_several_guards_the_first_that_holds_decides(engine):
    on = {"go": [{"guard": "event.n > 10", "target": "Big"}, {"guard": "event.n > 0", "target": "Small"}, "None"]}
    started(engine, machine("m", {"A": {"on": on}, "Big": {}, "Small": {}, "None": {}}))
    for n, state in [(11, "Big"), (1, "Small"), (0, "None")]:
        engine.force("m", "x", "A", actor="a", reason="again")
        assert engine.fire("m", "x", "go", {"n": n}).state == state


def test_exit_transition_and_entry_actions_run_in_that_order(engine):
    def note(word):
        return {"append": {"seen": f"'{word}'"}}

    states = {
        "A": {
            "exit": note("exit A"),
            "on": {
                "go": {"target": "B", "actions": note("go")},
                "stay": {"actions": note("stay")},
                "again": {"target": "A", "actions": note("again")},
                "anew": {"target": "A", "reenter": True},
            },
            "entry": note("entry A"),
        },
        "B": {"entry": [note("entry B"), note("twice")]},
    }
    made = started(engine, machine("m", states, context={"seen": []}))
    assert made.data["seen"] == ["entry A"]
    for event in ("stay", "again"):
        assert engine.fire("m", "x", event).entered == made.entered, "neither leaves the state"
    assert engine.fire("m", "x", "anew", now=NOW + 9).entered == NOW + 9
    assert engine.fire("m", "x", "go").data["seen"] == [
        "entry A", "stay", "again", "exit A", "entry A", "exit A", "go", "entry B", "twice",
    ]  # fmt: skip


def test_raised_events_and_eventless_transitions_belong_to_the_step(engine):
    states = {
        "A": {"on": {"go": {"target": "B", "actions": [{"raise": {"event": "more", "data": {"n": "event.n + 1"}}}]}}},
        "B": {"on": {"more": {"target": "C", "actions": {"set": {"n": "event.n"}}}}},
        "C": {"always": {"guard": "n > 5", "target": "D"}},
        "D": {"type": "final"},
    }
    started(engine, machine("m", states, context={"n": 0}))
    fired = engine.fire("m", "x", "go", {"n": 5})
    assert (fired.state, fired.data, fired.revision) == ("D", {"n": 6}, 2)
    assert fired.outcome.transitions == ["t1", "t2", "t3"]
    assert engine.live("m").flow == {"1:t1": 1, "1:t2": 1, "1:t3": 1}
    assert len(engine.history("m", "x")) == 2


def test_a_raised_event_that_nobody_takes_is_dropped(engine):
    go = {"actions": [{"raise": "nothing"}, {"set": {"n": "n + 1"}}]}
    started(engine, machine("m", {"A": {"on": {"go": go}}}, context={"n": 0}))
    assert engine.fire("m", "x", "go").data == {"n": 1}


def test_a_machine_that_never_comes_to_rest_is_refused_in_time(engine):
    round_and_round = {"guard": "n >= 0", "target": "C"}
    states = {"A": {"on": {"go": "B"}}, "B": {"always": round_and_round}, "C": {"always": "B"}}
    started(engine, machine("m", states, context={"n": 0}))
    with pytest.raises(Refused, match="more than 1000 microsteps"):
        engine.fire("m", "x", "go")


def test_an_event_that_raises_itself_with_twice_its_payload_is_refused_in_time(engine):
    again = {"actions": {"raise": {"event": "go", "data": {"x": ["event.x", "event.x"]}}}}
    started(engine, machine("m", {"A": {"on": {"go": again}}}))
    with pytest.raises(Refused, match="nested deeper|bytes of JSON|units of work"):
        engine.fire("m", "x", "go", {"x": 1})


def test_declared_payloads_are_checked(engine):
    declared = {"go": {"payload": {"n": {"type": "integer"}, "who": {"type": "string", "required": True}}}}
    started(engine, machine("m", {"A": {"on": {"go": {}}}}, events=declared))
    engine.fire("m", "x", "go", {"who": "me"})
    for payload, field, why in [
        ({"who": "me", "m": 1}, "m", "event 'go' has no field 'm'; its fields: n, who"),
        ({"who": "me", "n": "1"}, "n", "field 'n' of event 'go' takes integer, not string"),
        ({"who": "me", "n": 1.5}, "n", "takes integer, not number"),
        ({"who": None}, "who", "takes string, not null"),
        ({"n": 1}, "who", "event 'go' needs the field 'who'"),
        ({}, "who", "needs the field 'who'"),
    ]:
        with pytest.raises(BadPayload, match=why) as caught:
            engine.fire("m", "x", "go", payload)
        assert caught.value.field == field


def test_an_event_declared_without_fields_takes_none_and_one_not_declared_takes_any(engine):
    started(engine, door(events={"open": {"payload": {}}}))
    with pytest.raises(BadPayload, match="its fields: none"):
        engine.fire("door", "x", "open", {"speed": 3})
    engine.fire("door", "x", "open", {})
    engine.fire("door", "x", "close", {"any": ["thing"]})


def test_actions_collect_jobs_messages_and_log_lines(engine):
    go = {"actions": [
        {"enqueue": {"src": "mail", "input": {"to": "event.to"}}},
        {"emit": {"type": "went", "data": {"n": "n"}}},
        {"log": "'n is ' + str(n)"},
    ]}  # fmt: skip
    started(engine, machine("m", {"A": {"on": {"go": go}}}, context={"n": 7}))
    engine.fire("m", "x", "go", {"to": "é"})
    (job,) = engine.jobs("m", "mail")
    assert (job.input, job.instance, job.invoke, job.src) == ({"to": "é"}, "x", "", "mail")
    entries = [entry for _, entry in engine.client.xrange(engine.keys.partition("m").log)]
    assert [(e["kind"], e["name"], e["data"], e["instance"]) for e in entries] == [
        ("emit", "went", '{"n":7}', "x"),
        ("log", "log", '"n is 7"', "x"),
    ]


def test_two_callers_with_one_version_cannot_both_win(engine):
    first = started(engine, door())
    results = in_threads([lambda: engine.fire("door", "x", "open", expect=first.revision)] * 8)
    assert kinds(results) == {"Instance": 1, "Conflict": 7}
    assert engine.get("door", "x").revision == 2


@pytest.mark.faults
def test_nor_in_different_processes(engine, redis_url):
    started(engine, counter(), data={"n": -100})
    calls = [("fire", ["counter", "x", "add"], {"expect": version}) for version in range(1, 41)]
    outcomes = in_processes(engine, redis_url, calls)
    after = engine.get("counter", "x")
    assert outcomes["done"] == after.revision - 1 == after.data["n"] + 100
    assert set(outcomes) <= {"done", "Conflict"}


@pytest.mark.faults
def test_without_expect_no_step_of_any_process_is_lost(engine, redis_url):
    started(engine, counter(), data={"n": -1000})
    outcomes = in_processes(engine, redis_url, [("fire", ["counter", "x", "add"], {})] * 60)
    assert outcomes == {"done": 180}
    assert engine.get("counter", "x").data["n"] == -1000 + 180
    assert engine.live("counter").flow == {"1:t1": 180}


def test_actions_read_the_state_that_they_leave_or_enter(engine):
    def note(name):
        return {"set": {name: "instance.state"}}

    states = {
        "A": {"entry": note("one"), "exit": note("two"), "on": {"go": {"target": "B", "actions": note("three")}}},
        "B": {
            "entry": note("four"),
            "always": {"target": "C", "guard": "instance.state == 'B'", "actions": note("five")},
        },
        "C": {"entry": note("six")},
    }
    names = ("one", "two", "three", "four", "five", "six")
    context = fields(**{name: {"type": "string", "default": ""} for name in names})
    started(engine, machine("m", states, context=context))
    assert list(engine.fire("m", "x", "go").data.values()) == ["A", "A", "A", "B", "B", "C"]


def test_fields_of_the_instance_can_be_read_by_guards(engine):
    guard = "instance.id == 'x' and instance.machine == 'm' and instance.revision == 1 and instance.state == 'A'"
    started(engine, machine("m", {"A": {"on": {"go": {"guard": guard, "target": "B"}}}, "B": {}}))
    assert engine.fire("m", "x", "go").state == "B"


def test_a_program_of_an_earlier_release_has_the_revision_as_version(engine):
    states = {"A": {"on": {"go": {"guard": "instance.revision == 1", "target": "B"}}}, "B": {}}
    engine.publish(machine("m", states))
    definition = engine.keys.partition("m").definition(1)
    program = engine.client.hget(definition, "program")
    engine.client.hset(definition, "program", program.replace('"revision"', '"version"'))
    engine.create("m", "x")
    assert ('"revision"' in program, engine.fire("m", "x", "go").state) == (True, "B")


def test_a_field_that_is_unset_reads_as_none_and_is_gone(engine):
    go = {"guard": "x is None", "actions": {"set": {"y": "x is None"}}}
    states = {"A": {"on": {"drop": {"actions": {"unset": "x"}}, "go": go}}}
    started(engine, machine("m", states, context=fields(x="string", y="boolean")), data={"x": "here"})
    assert engine.fire("m", "x", "drop").data == {}
    assert engine.fire("m", "x", "go").data == {"y": True}


def test_the_revision_alone_is_returned_on_demand(engine):
    started(engine, counter())
    assert [engine.fire_revision("counter", "x", "add") for _ in range(2)] == [2, 3]
    assert engine.fire_revision("counter", "x", "add", key="k") == 4
    assert engine.fire("counter", "x", "add", key="k").revision == 4, "the outcome that a key keeps is whole"
    assert engine.fire_revision("counter", "x", "add", key="k") == 4
    assert engine.get("counter", "x").data["n"] == 3


def test_who_wants_the_revision_alone_gets_the_same_errors(engine):
    started(engine, counter(), data={"n": 3})
    with pytest.raises(Refused, match="n < 3 is false: n = 3"):
        engine.fire_revision("counter", "x", "add")
    with pytest.raises(UnknownInstance):
        engine.fire_revision("counter", "y", "add")
    with pytest.raises(BadInput):
        engine.fire_revision("counter", "x", "")
    assert engine.get("counter", "x").revision == 1


def test_a_chart_and_a_sender_return_the_revision_as_well(engine):
    regions = {
        name: {"initial": f"{name}1", "states": {f"{name}1": {"on": {"go": f"{name}2"}}, f"{name}2": {}}}
        for name in "AB"
    }
    publish(engine, machine("m", {"P": {"type": "parallel", "states": regions}}), "x")
    assert engine.fire_revision("m", "x", "go") == 2
    assert engine.get("m", "x").configuration == ["A2", "B2"]
