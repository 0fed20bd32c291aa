"""XState 4, and machines that XState has written out itself."""

from __future__ import annotations

import json

import pytest

from machines.engine.definitions import check
from machines.formats import load, read

pytestmark = pytest.mark.pure


def reading(config):
    definition, findings = read(json.dumps(config), "xstate")
    return definition, [f"{finding.code} {finding.path}" for finding in findings]


FOUR = {
    "id": "m",
    "initial": "a",
    "context": {"n": 0},
    "predictableActionArguments": True,
    "states": {
        "a": {
            "onEntry": "hello",
            "on": {
                "": {"target": "b", "cond": "n > 5"},
                "SELF": "a",
                "STAY": {"target": "a", "internal": True},
                "BOTH": {"target": "b", "cond": "n > 1", "in": "#m.a"},
            },
            "after": [{"delay": 1000, "target": "b"}, {"delay": "2000", "target": "b"}],
            "invoke": {"src": {"type": "load"}, "data": {"x": 1}, "autoForward": True, "onDone": "b"},
        },
        "b": {
            "initial": "c",
            "on": {"IN": ".c", "OUT": "#m.b.c", "LATER": {"target": ".c", "internal": False}},
            "states": {"c": {}, "end": {"type": "final", "data": {"x": "{{ (context, event) => context.n }}"}}},
        },
    },
}


def test_version_4_is_known_by_its_words_and_enters_its_own_states_again():
    definition, findings = reading(FOUR)
    a, b = definition["states"]["a"], definition["states"]["b"]
    assert findings[0] == "SB224 "
    assert a["on"] == {
        "SELF": {"target": "a", "reenter": True},
        "STAY": {"target": "a"},
        "BOTH": {"target": "b", "guard": "(n > 1) and In('a')"},
    }
    assert a["always"] == {"target": "b", "guard": "n > 5"}
    assert a["entry"] == [{"emit": {"type": "hello"}}]
    assert a["after"] == {"1000": {"target": "b"}, "2000": {"target": "b"}}
    assert a["invoke"] == {"src": "load", "input": {"x": 1}, "autoforward": True, "onDone": "b"}
    assert b["on"] == {
        "IN": ".c",
        "OUT": {"target": "#c", "reenter": True},
        "LATER": {"target": ".c", "reenter": True},
    }
    assert b["states"]["end"]["output"] == {"x": "n"}
    assert not [finding for finding in check(definition) if finding.is_error and "autoforward" not in finding.path]


@pytest.mark.parametrize("key", ["guard", "reenter"])
def test_a_word_of_version_5_settles_it(key):
    on = {"SELF": {"target": "a", "internal": False}, "X": {"target": "a", key: True}}
    definition, findings = reading({"id": "m", "initial": "a", "states": {"a": {"on": on}}})
    assert definition["states"]["a"]["on"]["SELF"] == {"target": "a"}
    assert findings == []


def test_words_inside_data_say_nothing_about_the_version():
    _, findings = reading(
        {"id": "m", "initial": "a", "context": {"cond": 1}, "states": {"cond": {}, "a": {"on": {"cond": "a"}}}}
    )
    assert findings == []


WRITTEN_OUT = {
    "id": "m",
    "key": "m",
    "type": "compound",
    "initial": {"target": ["#m.a"], "source": "#m", "actions": [], "eventType": None},
    "history": False,
    "on": {},
    "transitions": [],
    "entry": [],
    "exit": [],
    "order": -1,
    "invoke": [],
    "tags": [],
    "states": {
        "a": {
            "id": "m.a",
            "key": "a",
            "type": "atomic",
            "initial": {"target": [], "source": "#m.a", "actions": [], "eventType": None},
            "history": False,
            "states": {},
            "on": {
                "GO": [{"target": ["#m.b"], "actions": [], "source": "#m.a", "reenter": False, "eventType": "GO"}],
                "xstate.after.1000.m.a": [
                    {
                        "target": ["#m.b"],
                        "event": "xstate.after.1000.m.a",
                        "delay": 1000,
                        "actions": [],
                        "reenter": False,
                    }
                ],
                "xstate.done.actor.0.m.a": [{"target": ["#m.b"], "actions": [{"type": "x"}], "reenter": True}],
            },
            "transitions": [],
            "entry": [{"type": "hello"}, {"type": "xstate.raise"}],
            "exit": [{"type": "xstate.cancel"}],
            "order": 1,
            "invoke": [{"type": "xstate.invoke", "src": "load", "id": "0.m.a"}],
            "tags": ["busy"],
        },
        "b": {"id": "m.b", "key": "b", "type": "history", "history": "deep", "states": {}, "order": 2},
        "c": {"id": "own", "key": "c", "type": "final", "states": {}, "order": 3, "output": {"x": 1}},
    },
}


def test_a_machine_that_was_written_out_is_a_config_again():
    definition = load(json.dumps(WRITTEN_OUT), "xstate")
    assert definition == {
        "id": "m",
        "initial": "a",
        "states": {
            "a": {
                "entry": [{"emit": {"type": "hello"}}],
                "invoke": {"src": "load", "id": "0.m.a"},
                "on": {
                    "GO": [{"target": "#b"}],
                    "done.invoke.0.m.a": [{"target": "#b", "actions": {"emit": {"type": "x"}}, "reenter": True}],
                },
                "after": {"1000": [{"target": "#b"}]},
                "tags": ["busy"],
            },
            "b": {"type": "history", "history": "deep"},
            "c": {"id": "own", "type": "final", "output": {"x": 1}},
        },
    }
    assert reading(WRITTEN_OUT)[1] == [
        "SB224 ",
        'SB220 states.a.on["xstate.done.actor.0.m.a"][0].actions[0]',
        "SB220 states.a.entry[0]",
    ]
