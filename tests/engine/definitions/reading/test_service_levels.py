"""`sla` of a state: how long an instance should be in it at most."""

from __future__ import annotations

import pytest
from jsonschema import Draft202012Validator

from machines import formats
from machines.engine.definitions import check, compile, outline, schema
from tests.cases import for_each
from tests.engine.definitions.builders import codes, found, machine

DESK = {"Open": {"sla": "15m", "on": {"take": "Taken"}}, "Taken": {"on": {"drop": "Open"}}}


def with_level(level, **more):
    return machine({"A": {"sla": level, "on": {"go": "B"}} | more, "B": {"on": {"back": "A"}}})


def test_it_is_in_the_outline_and_in_the_program_in_ms():
    definition = machine(DESK)
    assert [state.sla for state in outline(definition).states] == [900_000, 0]
    states = compile(definition)["states"]
    assert (states[0]["sla"], "sla" in states[1]) == (900_000, False)


@pytest.mark.parametrize(("text", "ms"), [("500ms", 500), ("1.5s", 1500), ("2h", 7_200_000), ("1d", 86_400_000)])
def test_it_is_a_duration(text, ms):
    assert codes(with_level(text)) == []
    assert outline(with_level(text)).state("A").sla == ms


@for_each(
    "definition, line",
    [
        (with_level("soon"), 'SB113 states.A.sla: not a duration; write a number and a unit, such as "500ms"'),
        (with_level(900), "SB113 states.A.sla: not a duration"),
        (with_level("0s"), "SB114 states.A.sla: 0 ms is not between 1 and"),
        (with_level("999999d"), "SB114 states.A.sla:"),
        (machine(DESK | {"Open": {"deadline": "1h", "on": {"take": "Taken"}}}), 'write "sla"'),
        (machine(sla="1h"), 'SB105 sla: no key "sla"'),
        (
            with_level("1h", initial="a", states={"a": {}}),
            'SB119 states.A.sla: "sla" belongs to a state that instances rest in and leave again, not to this one; '
            "give it to a state inside",
        ),
        (with_level("1h", type="parallel", states={"a": {}, "b": {}}), "SB119 states.A.sla:"),
        (machine({"A": {"on": {"go": "B"}}, "B": {"type": "final", "sla": "1h"}}), "SB119 states.B.sla:"),
    ],
)
def test_what_is_none_is_found(definition, line):
    assert any(line in each for each in found(definition)), found(definition)


@for_each("level", ["15m", "1.5 h", "soon", 900, None])
def test_the_schema_agrees(level):
    definition = with_level(level)
    fits = Draft202012Validator(schema()).is_valid(definition)
    assert fits is not any(finding.is_error for finding in check(definition))


@pytest.mark.parametrize("format", ["json", "yaml", "scxml", "xstate"])
def test_it_survives_the_formats_that_can_carry_it(format):
    states = {"Open": DESK["Open"] | {"meta": {"team": "desk"}}, "Taken": DESK["Taken"]}
    read = formats.load(formats.dump(machine(states), format)[0], format)
    assert read["states"]["Open"]["sla"] == "15m"
    assert read["states"]["Open"]["meta"] == {"team": "desk"}


@pytest.mark.parametrize("format", ["mermaid", "dot"])
def test_other_formats_say_that_they_leave_it_out(format):
    _, findings = formats.dump(machine(DESK), format)
    assert any('"sla" of a state' in finding.message for finding in findings)
