"""``check`` answers with findings whatever it is given."""

from __future__ import annotations

import enum
import json
import math
from typing import Any

import pytest
from hypothesis import given, settings
from jsonschema import Draft202012Validator

from machines.engine.definitions import check, compile, compute_digest, outline, schema
from machines.engine.definitions.findings import get_severity
from machines.engine.errors import DefinitionError
from tests.cases import for_each
from tests.engine.definitions.builders import codes, found, machine, with_action
from tests.engine.definitions.finding_codes import CODES
from tests.engine.definitions.strategies import charts, definitions, machines, trees


@settings(max_examples=300)
@given(trees | definitions)
def test_any_python_value_gives_findings_that_can_be_printed(value):
    findings = check(value)
    for finding in findings:
        str(finding).encode()
        assert finding.code in CODES
        assert finding.severity == get_severity(finding.code)
    for derive in (compile, outline):
        if any(finding.is_error for finding in findings):
            with pytest.raises(DefinitionError) as caught:
                derive(value)
            assert [str(finding) for finding in caught.value.findings] == [str(finding) for finding in findings]
        else:
            derive(value)


@settings(max_examples=100)
@given(machines())
def test_a_sound_machine_compiles_to_a_program_whose_parts_fit_together(definition):
    assert [str(finding) for finding in check(definition) if finding.is_error] == []
    program, outlined = compile(definition), outline(definition)
    assert [state["name"] for state in program["states"]] == list(definition["states"])
    assert [state.name for state in outlined.states] == list(definition["states"])
    compiled = [t for state in program["states"] for part in ("transitions", "always") for t in state.get(part, [])]
    assert [t["id"] for t in compiled] == [f"t{number}" for number in range(1, len(compiled) + 1)]
    assert [t["id"] for t in compiled] == [t.id for state in outlined.states for t in state.transitions]
    assert all(1 <= t.get("target", 1) <= len(program["states"]) for t in compiled)
    assert compute_digest(program) == compute_digest(compile(definition))
    assert list(Draft202012Validator(schema()).iter_errors(definition)) == []


@settings(max_examples=100)
@given(charts())
def test_a_sound_chart_compiles_to_a_program_whose_parts_fit_together(definition):
    assert [str(finding) for finding in check(definition) if finding.is_error] == []
    program, outlined = compile(definition), outline(definition)
    states = program["states"]
    assert [state["name"] for state in states] == [state.name for state in outlined.states]
    assert all(state.get("parent", 0) < index for index, state in enumerate(states, start=1))
    compiled = [t for state in states for part in ("transitions", "always") for t in state.get(part, [])]
    assert [t["id"] for t in compiled] == [f"t{number}" for number in range(1, len(compiled) + 1)]
    starts = [state[key] for state in states for key in ("initial", "default") if key in state]
    named = [target for part in starts + compiled for target in part.get("targets", [part.get("target", 1)])]
    assert all(1 <= target <= len(states) for target in named)
    for state in outlined.states:
        assert {child.name for child in outlined.states if child.parent == state.name} == set(state.children)
        assert set(outlined.leaves_of(state.name)) <= set(outlined.leaves)
    assert list(Draft202012Validator(schema()).iter_errors(definition)) == []
    assert json.loads(json.dumps(program)) == program


def test_a_huge_document_is_refused_at_once():
    assert codes(machine(description="x" * 10_000_000)) == ["SB111"]
    assert codes({f"key {n}" * 3: n for n in range(200_000)}) == ["SB111"]


def test_a_value_that_contains_itself_is_named():
    loop: dict[str, Any] = machine()
    loop["states"]["Shut"] = loop
    assert any("contains itself" in line for line in found({"id": loop}))


def test_deep_nesting_is_named_and_not_followed():
    deep: Any = 1
    for _ in range(100_000):
        deep = [deep]
    assert "SB111" in codes(machine(context={"x": deep}))


def test_shared_parts_that_multiply_are_bounded():
    shared: Any = "xxxxxxxx"
    for _ in range(30):
        shared = [shared, shared]
    assert codes({"id": shared}) == ["SB111"]


@for_each(
    "value, words",
    [
        (math.nan, "the number is not finite: nan"),
        (-math.inf, "the number is not finite: -inf"),
        (10**5000, "2**53"),
        (2**53, "2**53"),
        ("a\0b", "NUL"),
        ("\ud800", "surrogate"),
        (b"x", "a value of type bytes is not JSON"),
        ({1: 2}, "a key is not text but 1"),
        ({None: 2}, "a key is not text but None"),
        ({(1, 2): 3}, "a key is not text but of type tuple"),
        ({"\0": 3}, "NUL"),
        ({1, 2}, "a value of type set is not JSON"),
        (lambda: 1, "a value of type function is not JSON"),
    ],
)
def test_what_is_not_json_is_named(value, words):
    (line,) = found(with_action({"set": {"extra": value}}))
    assert line.startswith("SB110 states.A.on.go.actions.set.extra")
    assert words in line


def test_a_broken_value_is_reported_once_and_not_as_something_else():
    assert codes(machine(id=math.nan)) == ["SB110"]
    assert codes(machine(initial=b"Shut")) == ["SB110"]


class Hostile(dict):
    def items(self):
        raise RuntimeError("no")

    __iter__ = keys = __len__ = __contains__ = get = items  # type: ignore[assignment]


class Loud(str):
    def __str__(self):
        raise RuntimeError("no")

    __repr__ = __format__ = strip = encode = __str__  # type: ignore[assignment]


class Liar:
    @property
    def __class__(self):
        raise RuntimeError("no")

    def __repr__(self):
        raise RuntimeError("no")


class Colour(enum.IntEnum):
    RED = 1


def test_subclasses_cannot_run_code_of_their_own():
    assert check(Hostile(machine())) == []
    assert check(machine(description=Loud("x"))) == []
    assert codes(machine(meta=Liar())) == ["SB110"]
    assert check(machine(history=Colour.RED)) == []
    assert codes(machine(meta={Liar(): 1})) == ["SB110"]


def test_a_text_full_of_control_characters_cannot_move_a_cursor():
    for line in found(machine({"\x1b[2J\r\n\u2028": {}})):
        assert line.isprintable()
