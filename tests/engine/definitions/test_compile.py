"""The program the functions library gets."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from machines.engine.definitions import check, compile, compute_digest
from machines.engine.errors import DefinitionError
from tests.cases import for_each

from .builders import machine, with_action, with_transition

EXAMPLES = Path(__file__).parents[3] / "examples"


def test_a_definition_with_errors_is_not_compiled_and_all_findings_come_along():
    with pytest.raises(DefinitionError) as caught:
        compile(machine(version=1, history=-1, initial="Nowhere"))
    assert sorted(finding.code for finding in caught.value.findings) == ["SB101", "SB114", "SB205"]


def test_a_small_machine_in_full():
    assert compile(machine()) == {
        "format": 1,
        "machine": "door",
        "initial": 1,
        "history": 100,
        "states": [
            {"name": "Shut", "final": False, "transitions": [{"id": "t1", "events": ["open"], "target": 2}]},
            {"name": "Open", "final": False, "transitions": [{"id": "t2", "events": ["shut"], "target": 1}]},
        ],
        "known": ["open", "shut"],
    }


def test_the_guards_of_the_activation_machine_are_explained_by_their_text():
    program = compile(json.loads((EXAMPLES / "activation.json").read_text()))
    right = program["states"][1]["transitions"][0]
    assert right["text"] == "event.token == token"
    assert right["guard"][:2] == ["because", "event.token == token"]
    assert right["actions"][0] == ["set", "failed", ["num", 0]]


@pytest.mark.parametrize("name", ["activation", "new_device"])
def test_the_examples_have_no_findings(name):
    assert check(json.loads((EXAMPLES / f"{name}.json").read_text())) == []


def test_transition_ids_count_in_document_order():
    states = {
        "A": {
            "always": {"target": "B", "guard": "n"},
            "invoke": {"src": "h", "onError": "B", "onDone": ["B", {"target": "A"}]},
            "on": {"x": ["A", "B"], "y": "B"},
        },
        "B": {"on": {"x": "A"}},
    }
    program = compile(machine(states, context={"n": 0}))
    first = program["states"][0]
    assert [(t["id"], t["events"][0]) for t in first["transitions"]] == [
        ("t1", "x"),
        ("t2", "x"),
        ("t3", "y"),
        ("t4", "done.invoke.A"),
        ("t5", "done.invoke.A"),
        ("t6", "error.invoke.A"),
    ]
    assert [t["id"] for t in first["always"]] == ["t7"]
    assert program["states"][1]["transitions"][0]["id"] == "t8"


def test_invokes_have_defaults():
    states = {"On hold": {"invoke": {"src": "ring"}, "on": {"x": "B"}}, "B": {"type": "final"}}
    program = compile(machine(states))
    assert program["states"][0]["invoke"] == [
        {"id": "On_hold", "src": "ring", "queue": "ring", "attempts": 3, "backoff": 1000, "lease": 30000}
    ]
    assert program["queues"] == ["ring"]


def test_several_invokes_are_numbered():
    states = {
        "A": {"invoke": [{"src": "a"}, {"src": "b", "id": "two"}, {"src": "c"}], "on": {"x": "B"}},
        "B": {"type": "final"},
    }
    assert [invoke["id"] for invoke in compile(machine(states))["states"][0]["invoke"]] == ["A.1", "two", "A.3"]


def test_durations_and_retries_become_milliseconds():
    invoke = {"src": "h", "lease": "1.5m", "retry": {"attempts": 7, "backoff": "250ms"}, "input": {"a": "now"}}
    states = {"A": {"invoke": invoke, "on": {"x": "B"}}, "B": {"type": "final"}}
    compiled = compile(machine(states))["states"][0]["invoke"][0]
    assert (compiled["lease"], compiled["attempts"], compiled["backoff"]) == (90_000, 7, 250)
    assert compiled["input"] == ["obj", ["a", ["now"]]]


WORK = {
    "retry": {"jitter": False, "stop": ["ValueError", "app.Gone"]},
    "timeout": "10m",
    "priority": 9,
    "delay": "5s",
    "unique": "name",
}
COMPILED = {
    "jitter": False,
    "stop": "ValueError app.Gone",
    "timeout": 600_000,
    "priority": 9,
    "delay": ["num", 5000],
    "unique": ["data", "name"],
}


def test_how_work_is_done_is_part_of_the_program_where_it_is_not_as_by_default():
    states = {"A": {"invoke": {"src": "h"} | WORK, "on": {"x": "B"}}, "B": {"invoke": {"src": "h", "priority": 5}}}
    first, second = (state["invoke"][0] for state in compile(machine(states, context={"name": ""}))["states"])
    usual = {"src": "h", "queue": "h", "attempts": 3, "backoff": 1000, "lease": 30_000}
    assert (first, second) == ({"id": "A"} | usual | COMPILED, {"id": "B"} | usual)


def test_a_priority_may_be_computed():
    states = {"A": {"invoke": {"src": "h", "priority": "n % 10"}}}
    invoke = compile(machine(states, context={"n": 1}))["states"][0]["invoke"][0]
    assert invoke["priority"] == ["bin", "%", ["data", "n"], ["num", 10]]


def test_limits_of_queues_are_part_of_the_program():
    limits = {"h": {"concurrency": 3}, "bulk": {"rate": "30/m"}, "both": {"rate": "5/10s", "concurrency": 1}, "no": {}}
    program = compile(machine({"A": {"invoke": {"src": "h"}}}, queues=limits))
    assert program["queues"] == ["h", "bulk", "both", "no"]
    assert program["limits"] == {
        "h": {"concurrency": 3},
        "bulk": {"rate": 30, "per": 60_000},
        "both": {"concurrency": 1, "rate": 5, "per": 10_000},
        "no": {},
    }


@for_each("action, compiled", [
        ({"set": {"n": 1, "name": "'x'"}}, [["set", "n", ["num", 1]], ["set", "name", ["str", "x"]]]),
        ({"set": {"extra": {"a": [None, "n"]}}}, [["set", "extra", ["obj", ["a", ["list", ["null"], ["data", "n"]]]]]]),
        ({"unset": ["n", "name"]}, [["unset", "n"], ["unset", "name"]]),
        ({"append": {"tags": "n"}}, [["append", "tags", ["data", "n"]]]),
        ({"raise": "next"}, [["raise", "next"]]),
        ({"raise": {"event": "next", "data": {"a": 1}}}, [["raise", "next", ["obj", ["a", ["num", 1]]]]]),
        ({"enqueue": {"src": "h"}}, [["enqueue", "h", "h"]]),
        ({"enqueue": {"src": "h", "queue": "q", "input": {}}}, [["enqueue", "q", "h", ["obj"]]]),
        ({"enqueue": {"src": "h"} | WORK}, [["enqueue", "h", "h", ["null"], COMPILED]]),
        ({"enqueue": {"src": "h", "input": {}, "lease": "1s"}}, [["enqueue", "h", "h", ["obj"], {"lease": 1000}]]),
        ({"emit": {"type": "x"}}, [["emit", "x"]]),
        ({"log": "n"}, [["log", ["data", "n"]]]),
        ({"type": "log", "params": 1}, [["log", ["num", 1]]]),
    ])  # fmt: skip
def test_actions_become_lists(action, compiled):
    assert compile(with_action(action))["states"][0]["transitions"][0]["actions"] == compiled


def test_data_fields_by_example():
    context = {"s": "", "i": 0, "f": 0.5, "b": True, "a": [1], "o": {"é": 1}, "x": None}
    assert compile(machine(context=context))["data"] == [
        {"name": "s", "type": "string", "initial": '""'},
        {"name": "i", "type": "integer", "initial": "0"},
        {"name": "f", "type": "number", "initial": "0.5"},
        {"name": "b", "type": "boolean", "initial": "true"},
        {"name": "a", "type": "json", "types": ["array"], "initial": "[1]"},
        {"name": "o", "type": "json", "types": ["object"], "initial": '{"é":1}'},
        {"name": "x", "type": "json", "types": ["any"], "initial": "null"},
    ]


def test_data_fields_by_schema():
    properties = {"s": {"type": "string"}, "n": {"type": ["integer", "null"], "default": 2.0}, "any": {}}
    assert compile(machine(context={"type": "object", "properties": properties}))["data"] == [
        {"name": "s", "type": "string"},
        {"name": "n", "type": "json", "types": ["integer", "null"], "initial": "2"},
        {"name": "any", "type": "json", "types": ["any"]},
    ]


def test_payloads_by_schema_and_by_example():
    payload = {"a": "", "b": {"type": ["integer", "null"], "required": True}, "c": {"x": 1}, "d": None}
    events = {"open": {"payload": payload}, "shut": {"payload": {}}, "free": {}}
    definition = machine({"A": {"on": {"open": "B", "shut": "B", "free": "B"}}, "B": {"type": "final"}}, events=events)
    assert compile(definition)["events"] == {
        "open": {
            "a": {"types": ["string"], "required": False},
            "b": {"types": ["integer", "null"], "required": True},
            "c": {"types": ["object"], "required": False},
            "d": {"types": ["any"], "required": False},
        },
        "shut": {},
    }


def test_a_payload_may_be_one_json_schema():
    schema = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
    events = {"open": {"payload": schema}}
    assert compile(machine(events=events))["events"] == {"open": {"a": {"types": ["string"], "required": True}}}


def test_known_events_are_those_that_may_come_from_outside():
    states = {
        "A": {"on": {"b": "B", "a": "B", "error.x": "B"}, "invoke": {"src": "h", "onDone": "B"}},
        "B": {"type": "final"},
    }
    program = compile(machine(states, events={"a": {}}))
    assert program["known"] == ["a", "b"]
    assert "open" not in program


@pytest.mark.parametrize("pattern", ["*", "door.*"])
def test_a_pattern_opens_the_machine_to_any_event(pattern):
    program = compile(machine({"A": {"on": {pattern: "B"}}, "B": {"type": "final"}}))
    assert program["open"] is True
    assert "known" not in program


def test_a_literally_true_guard_is_none_at_all():
    program = compile(with_transition({"guard": True, "target": "B", "reenter": True}))
    assert program["states"][0]["transitions"][0] == {"id": "t1", "events": ["go"], "target": 2, "reenter": True}


def test_equal_definitions_have_equal_digests_and_others_do_not():
    one = compute_digest(compile(machine()))
    assert one == compute_digest(compile(machine(description="other words")))
    assert one != compute_digest(compile(machine(history=5)))
    assert len(one) == 12
    assert set(one) <= set("0123456789abcdef")


def test_programs_are_plain_json_without_null():
    program = compile(json.loads((EXAMPLES / "new_device.json").read_text()))
    assert json.loads(json.dumps(program)) == program
    assert "null," not in json.dumps(program).replace('["null"]', "")
