"""XState 4, and machines that XState has written out itself."""

from __future__ import annotations

import json

import pytest

from machines.engine.definitions import check
from machines.formats import read

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


def test_a_machine_that_was_written_out_is_refused():
    definition, findings = reading({"id": "m", "key": "m", "initial": {"target": ["#m.a"]}, "transitions": []})
    assert (definition, findings) == (None, ["SB141 "])
