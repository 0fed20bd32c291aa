"""Markup of the library transitions: hierarchy, regions, conditions and callbacks by name."""

from __future__ import annotations

import json

import pytest

from machines.engine.definitions import check
from machines.formats import guess, load, read

pytestmark = pytest.mark.pure

FLAT = """
name: 'lift: '
states:
  - ground
  - name: moving
    on_enter: [close_doors, start]
    on_exit: stop
    tags: [busy]
    timeout: 2.5
    on_timeout: alarm
  - {name: broken, final: true}
initial: ground
transitions:
  - {trigger: call, source: ground, dest: moving, conditions: [has_power, is_calm], unless: is_full, before: beep}
  - [arrive, moving, ground]
  - {trigger: shake, source: '*', dest: null, after: count}
  - {trigger: again, source: moving, dest: '='}
  - {trigger: fail, source: [ground, moving], dest: broken, prepare: look}
before_state_change: note
send_event: true
auto_transitions: true
"""

NESTED = {
    "initial": "C_1",
    "states": [
        "A",
        {"name": "C", "children": ["1", {"name": "2", "initial": "a", "children": ["a", "b"]}], "on_final": "cheer"},
        {"name": "P", "parallel": ["x", {"name": "y", "children": ["a", "b"], "initial": "a"}]},
        {"name": "Q", "initial": ["left", "right"], "children": ["left", "right"]},
        {
            "name": "M",
            "children": {"states": ["on", "off"], "initial": "off", "transitions": [["flip", "off", "on"]]},
        },
    ],
    "transitions": [
        ["go", "A", "C_2_b"],
        ["back", "C", "A"],
        {"trigger": "in", "source": ["C_1", "C.2"], "dest": "P"},
        ["drop", "P", "C"],
        ["both", "A", ["P_x", "P_y_b"]],
    ],
}


def states(text):
    definition = load(text, "transitions")
    assert [str(found) for found in check(definition) if found.is_error] == []
    return definition["states"]


def test_a_flat_machine():
    definition = load(FLAT, "transitions")
    assert definition["id"] == "lift"
    assert definition["context"] == {"has_power": False, "is_calm": False, "is_full": False}
    shake = {"actions": [{"emit": {"type": "note"}}, {"emit": {"type": "count"}}]}
    fail = {"target": "broken", "actions": {"emit": {"type": "note"}}}
    assert states(FLAT) == {
        "ground": {
            "on": {
                "call": {
                    "target": "moving",
                    "guard": "has_power and is_calm and not is_full",
                    "actions": [{"emit": {"type": "note"}}, {"emit": {"type": "beep"}}],
                },
                "shake": shake,
                "fail": fail,
            }
        },
        "moving": {
            "tags": ["busy"],
            "entry": [{"emit": {"type": "close_doors"}}, {"emit": {"type": "start"}}],
            "exit": {"emit": {"type": "stop"}},
            "on": {
                "arrive": {"target": "ground", "actions": {"emit": {"type": "note"}}},
                "shake": shake,
                "again": {"target": "moving", "reenter": True, "actions": {"emit": {"type": "note"}}},
                "fail": fail,
            },
            "after": {"2500ms": {"actions": {"emit": {"type": "alarm"}}}},
        },
        "broken": {"on": {"shake": shake}},
    }
    said = "\n".join(str(found) for found in read(FLAT, "transitions")[1])
    assert "SB221 auto_transitions: there are no to_<state> events" in said
    assert "SB221 transitions[4].prepare" in said
    assert 'SB224 states[2]: the final state "broken" has ways out' in said


def test_hierarchy_and_regions():
    definition = load(json.dumps(NESTED), "transitions")
    found = states(json.dumps(NESTED))
    assert definition["initial"] == "C.1"
    assert found["A"]["on"] == {"go": "#C.2.b", "both": {"target": ["x", "#P.y.b"]}}
    assert found["C"]["initial"] == "C itself"
    assert list(found["C"]["states"]) == ["C itself", "1", "2"]
    assert found["C"]["onDone"] == {"actions": {"emit": {"type": "cheer"}}}
    assert found["C"]["on"] == {"back": "A"}
    assert found["C"]["states"]["2"]["initial"] == "a"
    assert found["P"]["type"] == found["Q"]["type"] == "parallel"
    assert list(found["P"]["states"]) == ["x", "y"]
    assert found["M"]["initial"] == "off"
    assert found["M"]["states"]["off"] == {"on": {"flip": "on"}}


def test_ordered_transitions_and_an_initial_state_that_is_added():
    text = json.dumps({"states": ["b", "c"], "initial": "a", "transitions": [], "ordered_transitions": True})
    found = states(text)
    assert {name: state["on"]["next_state"] for name, state in found.items()} == {"a": "b", "b": "c", "c": "a"}


@pytest.mark.parametrize(
    ("markup", "message"),
    [
        ([], "SB104 definition: expected markup, found an array"),
        ({"states": ["a"]}, 'SB106 transitions: "transitions" is missing'),
        ({"states": ["a"], "transitions": [["go", "a", "b"]]}, 'SB101 transitions[0][2]: no state "b"'),
        ({"states": ["a"], "transitions": [["go"]]}, "SB106 transitions[0]: a transition needs"),
        ({"states": ["a"], "transitions": {"go": "a"}}, "SB104 transitions: expected a list of transitions"),
        ({"states": [5.5], "transitions": []}, "SB104 states[0]: expected a state"),
        ({"states": [{"on_enter": "x"}], "transitions": []}, 'SB106 states[0].name: "name" is missing'),
        ({"states": [{"name": "a", "remap": {"b": "c"}}], "transitions": []}, "SB141 states[0].remap"),
        ({"states": ["a"], "transitions": [["go", "a", "a", 5]]}, "SB104 transitions[0][3]"),
        ({"states": [f"s{n}" for n in range(600)], "transitions": []}, "SB111 states"),
        ({"states": ["a"], "transitions": [["go", ["a"] * 30_000, "a"]] * 3}, "SB111 transitions[1]"),
    ],
    ids=range(11),
)
def test_what_is_wrong_is_said_at_its_place(markup, message):
    errors = [str(found) for found in read(json.dumps(markup), "transitions")[1] if found.is_error]
    assert errors
    assert errors[0].startswith(message), errors


@pytest.mark.parametrize(
    ("text", "name", "format"),
    [
        (json.dumps(NESTED), "", "transitions"),
        (
            json.dumps({"states": ["a"], "transitions": [{"trigger": "x", "source": "a", "dest": "a"}]}),
            "",
            "transitions",
        ),
        (FLAT, "", "transitions"),
        (FLAT, "lift.yaml", "transitions"),
        (FLAT, "lift.transitions.yaml", "transitions"),
        ('{"states": {"a": {}}, "initial": "a", "description": "transitions, trigger: and dest:"}', "", "json"),
        ("states: {a: {}}\ninitial: a\nmeta: {trigger: 1}", "a.yaml", "yaml"),
    ],
    ids=range(7),
)
def test_markup_is_recognised(text, name, format):
    assert guess(text, name) == format
