"""The readable form that diagrams, pages and forms are made from."""

from __future__ import annotations

import pytest

from machines.engine.definitions import EventOutline, FieldOutline, outline
from machines.engine.errors import DefinitionError
from tests.cases import for_each

from .builders import machine, with_action, with_guard, with_transition


def test_an_outline_needs_a_definition_without_errors():
    with pytest.raises(DefinitionError):
        outline(machine(initial="Nowhere"))


def test_states_stand_in_document_order_with_their_index():
    states = outline(
        machine({"A": {"on": {"x": "B"}, "tags": "busy"}, "B": {"type": "final", "description": "done"}})
    ).states
    assert [(s.name, s.index, s.type, s.tags, s.description) for s in states] == [
        ("A", 1, "atomic", ("busy",), ""),
        ("B", 2, "final", (), "done"),
    ]


def test_a_transition_tells_its_guard_and_actions_as_text():
    transition = {"target": "B", "guard": " n <  3 ", "actions": [{"set": {"n": "n + 1"}}, {"log": {"a": "n"}}]}
    found = outline(with_transition(transition)).states[0].transitions[0]
    assert (found.id, found.events, found.source, found.target) == ("t1", ("go",), "A", "B")
    assert found.guard_text == "n <  3"
    assert found.actions == ("n = n + 1", "log {a: n}")


@for_each(
    "action, text",
    [
        ({"set": {"name": "'x'"}}, "name = 'x'"),
        ({"set": {"extra": {"a": [1, "n", None]}}}, "extra = {a: [1, n, null]}"),
        ({"unset": "n"}, "unset n"),
        ({"append": {"tags": "name"}}, "append name to tags"),
        ({"raise": "next"}, "raise next"),
        ({"raise": {"event": "next", "data": {"a": "n"}}}, "raise next {a: n}"),
        ({"enqueue": {"src": "mail"}}, "enqueue mail"),
        ({"enqueue": {"src": "mail", "queue": "out"}}, "enqueue mail on out"),
        ({"emit": {"type": "opened"}}, "emit opened"),
        ({"log": "n"}, "log n"),
    ],
)
def test_actions_read_as_short_text(action, text):
    assert outline(with_action(action)).states[0].transitions[0].actions == (text,)


def test_transitions_of_always_have_no_events():
    states = {"A": {"always": {"target": "B", "guard": "n"}, "on": {"x": "B"}}, "B": {"type": "final"}}
    transitions = outline(machine(states, context={"n": 0})).states[0].transitions
    assert [(t.id, t.events) for t in transitions] == [("t1", ("x",)), ("t2", ())]


def test_queues_are_those_of_invokes_and_enqueues():
    states = {
        "A": {"entry": {"enqueue": {"src": "mail"}}, "invoke": {"src": "h", "queue": "q"}, "on": {"x": "B"}},
        "B": {"type": "final"},
    }
    found = outline(machine(states))
    assert found.queues == ("mail", "q")
    assert found.states[0].enqueues == ("mail",)
    assert (found.states[0].invokes[0].src, found.states[0].invokes[0].queue) == ("h", "q")


def test_data_fields_tell_type_and_first_value():
    properties = {"a": {"type": "string", "description": "why", "default": "x"}, "b": {}}
    assert outline(machine(context={"type": "object", "properties": properties})).data == (
        FieldOutline("a", ("string",), "why", "x"),
        FieldOutline("b", ("any",), "", None),
    )


def test_events_of_a_state_are_those_from_outside():
    states = {
        "A": {"on": {"go": "B", "done.invoke.A": "B"}, "invoke": {"src": "h", "onError": "B"}},
        "B": {"type": "final"},
    }
    assert [event.name for event in outline(machine(states)).events_of("A")] == ["go"]
    assert outline(machine(states)).events_of("B") == []
    assert outline(machine(states)).events_of("Nowhere") == []


def test_declared_events_bring_their_fields():
    events = {"go": {"description": "Go!", "payload": {"token": {"type": "string", "required": True}}}}
    (go, _) = outline(with_transition("B", events=events)).events_of("A")
    assert go == EventOutline("go", "Go!", (FieldOutline("token", ("string",), required=True),))
    assert not go.open


def test_undeclared_events_have_the_fields_their_guards_and_actions_read():
    chain = [
        {"guard": "event.token == name", "target": "B"},
        {"actions": {"set": {"extra": {"a": ["event['who']"]}, "name": "event.token"}}},
    ]
    (go, _) = outline(with_transition(chain)).events_of("A")
    assert go.fields == (FieldOutline("token", compared=("string",)), FieldOutline("who"))
    assert go.open


def test_a_pattern_stands_for_the_declared_events_it_matches():
    events = {"door.open": {}, "door.shut": {}, "other": {}}
    states = {"A": {"on": {"door.*": {"target": "B", "guard": "event.x"}}}, "B": {"on": {"*": "A"}}}
    found = outline(machine(states, events=events))
    assert [event.name for event in found.events_of("A")] == ["door.open", "door.shut"]
    assert found.events_of("A")[0].fields == (FieldOutline("x"),)
    assert [event.name for event in found.events_of("B")] == ["door.open", "door.shut", "other"]


def test_a_guard_that_is_literally_true_is_no_guard():
    assert outline(with_guard(True)).states[0].transitions[0].guard_text is None
