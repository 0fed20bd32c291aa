"""Mermaid and DOT: what is drawn is what the definition says, whatever its names look like."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from machines.engine.definitions import check, outline
from machines.engine.errors import DefinitionError
from machines.formats import dump
from machines.formats.diagrams.mermaid import clean, is_internal
from tests.cases import for_each
from tests.catalog.samples import BROKEN, door

from .charts import HOSTILE, charts, order
from .mermaid_text import read_mermaid

pytestmark = pytest.mark.pure

MERMAID = """\
---
title: "order"
---
stateDiagram-v2
  state "Draft<br/>entry / log n<br/>exit / n = 0<br/>note / note = event.text" as s1
  state "Checks" as s2 {
    state "H#42;" as s9
    state "Pack" as s3 {
      state "packing" as s4
      state "packed" as s5
      s5 --> [*]
      [*] --> s4
    }
    --
    state "Pay" as s6 {
      state "paying<br/>do / charge" as s7
      state "paid" as s8
      s8 --> [*]
      [*] --> s7
    }
  }
  state "Lost" as s10
  state "Done" as s11
  s11 --> [*]
  [*] --> s1
  s1 --> s2 : send #91;n #60; 3#93;<br/>/ n = n #43; 1
  s1 --> s10 : send
  state t4 <<fork>>
  s1 --> t4 : both
  t4 --> s5
  t4 --> s8
  s1 --> s9 : back
  s1 --> s10 : after 30 s
  s2 --> s1 : stop
  s2 --> s11 : done
  s4 --> s5 : ok
  s7 --> s8 : done
  s7 --> s10 : error
  s9 --> s3
  s9 --> s6
  s10 --> s1 : again
  s10 --> s1 : #91;n #62; 100#93;
"""


def test_mermaid_says_everything_in_its_own_way():
    text, findings = dump(order(), "mermaid")
    assert text == MERMAID
    assert [finding.message for finding in findings] == [
        'a Mermaid diagram has no place for "context"',
        "Mermaid has no history states; H became an ordinary state called H",
        "4 arrows cross the border of a state; some releases of Mermaid do not draw those",
    ]


def test_dot_is_read_by_graphviz():
    text, findings = dump(order(), "dot")
    assert text.startswith("digraph order {")
    assert [finding.code for finding in findings] == ["SB222"]


def test_a_machine_with_transitions_of_its_own_is_a_state_around_all_others():
    drawn = read_mermaid(dump(door(on={"reset": "Shut"}), "mermaid")[0])
    assert [(lines[0], parent) for lines, parent in drawn.states.values()] == [
        ("door", None),
        ("Shut", "s1"),
        ("Open", "s1"),
    ]
    assert drawn.starts == [("s1", "s2"), (None, "s1")]
    assert ("s1", "s2", ["reset"]) in drawn.arrows


def test_what_stays_in_a_state_is_written_into_it():
    states = {
        "A": {"on": {"x": {"actions": {"log": "1"}}, "y": {"target": "A"}, "z": {"target": "A", "reenter": True}}}
    }
    drawn = read_mermaid(dump({"id": "m", "initial": "A", "states": states}, "mermaid")[0])
    assert drawn.states["s1"][0] == ["A", "x / log 1", "y"]
    assert drawn.arrows == [("s1", "s1", ["z"])]


@for_each(
    "changes, said",
    [
        ({"events": {"open": {"payload": {"code": ""}}}}, '"events"'),
        ({"history": 5}, '"history"'),
        ({"output": "'gone'"}, '"output"'),
        ({"states": {"Shut": {"tags": "x", "on": {"open": "Shut"}}}}, '"tags" of a state'),
        (
            {"states": {"Shut": {"on": {"open": {"target": "Shut", "description": "in"}}}}},
            '"description" of a transition',
        ),
        ({"states": {"Shut": {"invoke": {"src": "h", "retry": {"attempts": 2}}}}}, '"retry" of an invoke'),
        (
            {"states": {"Shut": {"initial": {"target": "A", "actions": {"log": "1"}}, "states": {"A": {}}}}},
            "the actions of an initial transition",
        ),
    ],
)
@for_each("format", ["mermaid", "dot"])
def test_what_a_diagram_does_not_say_is_a_finding(format, changes, said):
    found = dump({"id": "m", "initial": "Shut", "states": {"Shut": {"on": {"open": "Shut"}}}} | changes, format)[1]
    assert any(finding.code == "SB222" and finding.message.endswith(said) for finding in found)


def test_a_start_further_inside_is_drawn_as_far_as_mermaid_can():
    states = {"A": {"initial": "C", "states": {"B": {"initial": "C", "states": {"C": {}}}}}}
    text, findings = dump({"id": "m", "initial": "A", "states": states}, "mermaid")
    assert ("s1", "s2") in read_mermaid(text).starts
    assert any("starts further inside" in finding.message for finding in findings)


@pytest.mark.parametrize("format", ["mermaid", "dot"])
def test_what_has_errors_is_not_drawn(format):
    with pytest.raises(DefinitionError):
        dump(BROKEN, format)


@settings(max_examples=40)
@given(charts(HOSTILE))
def test_no_name_becomes_syntax(definition):
    """Every line is one of those we write, and what they say is the outline."""
    if any(finding.is_error for finding in check(definition)):
        return
    expected = outline(definition)
    drawn = read_mermaid(dump(definition, "mermaid")[0])
    ids = {state.name: f"s{state.index}" for state in expected.states}
    for state in expected.states:
        lines, around = drawn.states[ids[state.name]]
        assert around == (ids[state.parent] if state.parent else None)
        if state.type != "history":
            assert lines[0] == clean(state.name)
    assert sorted(drawn.ends) == sorted(ids[state.name] for state in expected.states if state.type == "final")
    arrows = [
        (ids[t.source], ids[t.targets[0]])
        for state in expected.states
        for t in state.transitions
        if not is_internal(t, expected)
    ]
    arrows += [(ids[s.name], ids[name]) for s in expected.states if s.type == "history" for name in s.initial]
    assert sorted((source, target) for source, target, _ in drawn.arrows) == sorted(arrows)


def test_each_transition_of_one_timer_names_its_time():
    waits = {"id": "m", "initial": "a", "context": {"x": False}, "states": {"b": {}, "c": {}}}
    waits["states"]["a"] = {"after": {"30s": [{"target": "b", "guard": "x"}, "c"]}}
    text, _ = dump(waits, "mermaid")
    assert text.count(" : after 30 s") == 2
