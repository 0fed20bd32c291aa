"""`allow` of a transition: the groups of people who may send its event."""

from __future__ import annotations

import pytest

from machines.engine.definitions import check, compile, outline
from machines.formats import dump, read
from tests.cases import for_each
from tests.engine.definitions.builders import machine, with_transition

pytestmark = pytest.mark.pure

GUARDED = with_transition({"target": "B", "allow": ["supervisor", "night shift"]})


def codes(definition):
    return [(finding.code, finding.path) for finding in check(definition) if finding.is_error]


def test_the_outline_and_the_program_have_it():
    assert codes(GUARDED) == []
    first, second = outline(GUARDED).state("A").transitions
    assert (first.allow, second.allow) == (("supervisor", "night shift"), ())
    programs = compile(GUARDED)["states"][0]["transitions"]
    assert (programs[0]["allow"], "allow" in programs[1]) == (["supervisor", "night shift"], False)


@for_each(
    "allow, code",
    [
        ("supervisor", "SB104"),
        ([], "SB114"),
        (["g"] * 21, "SB114"),
        ([" "], "SB107"),
        (["x" * 151], "SB107"),
        ([1], "SB104"),
    ],
)
def test_what_names_no_groups_is_an_error(allow, code):
    assert [found for found, _ in codes(with_transition({"target": "B", "allow": allow}))] == [code]


def test_nobody_sends_what_comes_by_itself():
    states = {"A": {"after": {"1s": {"target": "B", "allow": ["g"]}}}, "B": {"type": "final"}}
    assert [found for found, _ in codes(machine(states))] == ["SB104"]


@pytest.mark.parametrize("format", ["xstate", "scxml", "json", "yaml"])
def test_it_comes_back_from_other_formats(format):
    text, _ = dump(GUARDED, format)
    back, _ = read(text, format)
    assert outline(back).state("A").transitions[0].allow == ("supervisor", "night shift")
    assert outline(back).state("A").transitions[1].allow == ()


@pytest.mark.parametrize("format", ["mermaid", "dot"])
def test_a_diagram_says_that_it_leaves_it_out(format):
    _, findings = dump(GUARDED, format)
    assert any('"allow" of a transition' in finding.message for finding in findings)
