"""Methods of arrays in an assignment of XState: as ``foreach``, they leave what JavaScript leaves."""

from __future__ import annotations

import json

from machines.formats import read
from tests.cases import for_each

LIST = [{"id": 1, "n": 5}, {"id": 2, "n": None}, {"id": 3, "n": 7}]


def machine(written: str) -> str:
    return (
        "import { assign, setup } from 'xstate';\n"
        f"export const m = setup({{}}).createMachine({{ id: 'm', initial: 'a', context: {{ list: {json.dumps(LIST)},"
        f" empty: [], found: null }}, states: {{ a: {{ on: {{ go: {{ actions: {written} }} }} }} }} }});"
    )


@for_each(
    "code, value",
    [
        ("context.list.map((x) => x.id * event.by)", [10, 20, 30]),
        ("context.list.map((x, i) => (i === 1 ? event.by : x.n))", [5, 10, 7]),
        ("context.list.map((x) => { if (x.id > 1) { return x.id; } return 0; })", [0, 2, 3]),
        ("context.list.filter((x) => x.n !== null)", [LIST[0], LIST[2]]),
        ("context.list.filter((x) => x.n !== null).map((x) => x.id)", [1, 3]),
        ("context.list.some((x) => x.n > 6)", True),
        ("context.list.every((x) => x.id > 1)", False),
        ("context.empty.every((x) => x.id > 1)", True),
        ("context.list.find((x) => x.id > 1)", LIST[1]),
        ("context.list.find((x) => x.id > 9) ?? 'none'", "none"),
        ("context.list.map((x) => x.n).find((n) => n !== 5)", None),
        ("context.list.findIndex((x) => x.id === 3)", 2),
        ("context.list.findIndex((x) => x.id === 9)", -1),
        ("context.list.reduce((sum, x) => sum + x.id, 0)", 6),
        ("context.list.reduce((sum, x, i) => sum + i, event.by)", 13),
    ],
)
def test_a_loop_in_an_assignment_gives_what_javascript_gives(engine, code, value):
    for written in (
        f"assign({{ found: ({{ context, event }}) => {code} }})",
        f"assign(({{ context, event }}) => ({{ found: {code} }}))",
    ):
        definition, findings = read(machine(written), "xstate")
        assert [str(one) for one in findings if one.is_error] == []
        done = engine.simulate(definition, [("go", {"by": 10})])[-1]
        assert (done.outcome, done.data.get("found")) == ("taken", value)
        assert set(done.data) <= {"list", "empty", "found"}, "the fields of the loop are gone"


def test_all_values_are_those_of_before(engine):
    first, then = "({ context }) => context.list.slice(1)", "({ context }) => context.list.map((x) => x.id)"
    written = f"assign({{ list: {first}, found: {then} }})"
    definition, _ = read(machine(written), "xstate")
    assert engine.simulate(definition, ["go"])[-1].data["found"] == [1, 2, 3]


@for_each(
    "code",
    [
        "context.found ? context.list.map((x) => x.id + 1) : []",
        "context.found && context.list.map((x) => x.id + 1)",
        "context.list.map((x) => context.list.filter((y) => y.id > x.id))",
        "context.list.reduce((sum, x) => sum + x.id)",
        "context.list.sort((a, b) => a.n - b.n)",
    ],
)
def test_what_is_asked_only_sometimes_or_means_something_else_is_refused(code):
    _, findings = read(machine(f"assign({{ found: ({{ context }}) => {code} }})"), "xstate")
    assert any("with such a function" in str(one) for one in findings if one.is_error)
