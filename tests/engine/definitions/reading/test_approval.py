"""`approval` of a machine: what one person may not do alone."""

from __future__ import annotations

import pytest

from machines.engine.definitions import check, compile, outline
from machines.engine.definitions.reading.machine_settings import REPAIRS
from machines.engine.instances.repairs import PREVIEWS
from machines.formats import dump, read
from tests.cases import for_each
from tests.engine.definitions.builders import machine

pytestmark = pytest.mark.pure

STATES = {"A": {"on": {"go": "B", "door.*": "B", "tool.on": "B"}}, "B": {"type": "final"}}
NAMED = ["delete", "fire:go", "fire:door.open", "fire:tool"]


def asking(*names):
    return machine(STATES) | {"approval": list(names)}


def found(definition):
    return [(finding.code, finding.path) for finding in check(definition) if finding.is_error]


def test_the_repairs_are_those_of_the_engine():
    assert PREVIEWS == REPAIRS


def test_the_outline_and_the_program_have_it():
    assert found(asking(*NAMED)) == []
    assert outline(asking(*NAMED)).approval == tuple(NAMED)
    assert compile(asking(*NAMED))["approval"] == NAMED
    assert "approval" not in compile(asking())
    assert outline(machine(STATES)).approval == ()


@for_each(
    "approval, code, path",
    [
        ("delete", "SB104", "approval"),
        ([1], "SB104", "approval[0]"),
        (["delete", "delete"], "SB115", "approval[1]"),
        (["erase"], "SB125", "approval[0]"),
        (["delete", "fire:gone"], "SB125", "approval[1]"),
        (["fire:"], "SB107", "approval[0]"),
        (["fire:done.invoke.x"], "SB107", "approval[0]"),
    ],
)
def test_what_nobody_can_do_is_an_error(approval, code, path):
    assert found(machine(STATES) | {"approval": approval}) == [(code, path)]


def test_a_slip_of_the_pen_gets_a_hint():
    (finding,) = [one for one in check(asking("delte")) if one.is_error]
    assert finding.hint == 'did you mean "delete"?'


@pytest.mark.parametrize("format", ["xstate", "scxml", "json", "yaml"])
def test_it_comes_back_from_other_formats(format):
    text, _ = dump(asking(*NAMED), format)
    back, _ = read(text, format)
    assert outline(back).approval == tuple(NAMED)
