"""Texts that were made to take long are answered.

The limit of each test is for what hangs: squares of these sizes take many minutes. Figures are in ``benchmarks/``.
"""

from __future__ import annotations

import json

import pytest

from machines.formats import dump, read

pytestmark = pytest.mark.pure


def config(**state):
    return json.dumps({"id": "m", "initial": "a", "states": {"a": state}})


MANY = 15_000


@pytest.mark.parametrize(
    "text",
    [
        config(on={f"e.{number}": {} for number in range(MANY)}),
        config(on={"e": {"guard": "x"}} | {f"e.{number}": {"guard": "x"} for number in range(MANY)}),
        config(on={"*": {}} | {f"e{number}": {} for number in range(MANY)}),
        config(entry={"type": "xstate.assign", "params": {f"f{number}": number for number in range(MANY)}}),
        config(entry={"type": "xstate.assign", "params": {f"f{n}": f"{{{{context.f{n + 1}}}}}" for n in range(2000)}}),
        config(on={"e": [{"target": f"#m.{'a.' * 30}x"}] * (MANY // 2)}),
        config(entry=["x"] * MANY),
        config(after={f"delay{number}": "a" for number in range(MANY)}),
        json.dumps(
            {
                "id": "m",
                "initial": "s0",
                "states": {f"s{n}": {"id": f"i{n}", "on": {"e": f"#i{n}"}} for n in range(9000)},
            }
        ),
        json.dumps({"id": "m", "initial": "a", "states": {}, "context": {f"a-{n}": n for n in range(MANY)}}),
    ],
    ids=range(10),
)
def test_configs(text):
    assert len(text) < 1 << 20
    _, findings = read(text, "xstate")
    assert isinstance(findings, list)


def doubling(levels: int) -> str:
    constants = [f"const c{n} = {{ a: c{n + 1}, b: c{n + 1} }};" for n in range(levels)]
    return "\n".join(
        [*constants, f"const c{levels} = 1;", "createMachine({ id: 'm', initial: 'a', meta: c0, states: { a: {} } })"]
    )


def guards_of_guards(width: int, levels: int) -> str:
    named = [f"g{n}: and([{', '.join([repr(f'g{n + 1}')] * width)}])" for n in range(levels)]
    use = "createMachine({ id: 'm', initial: 'a', states: { a: { on: { X: { guard: 'g0' } } } } }"
    return f"{use}, {{ guards: {{ {', '.join(named)} }} }})"


@pytest.mark.parametrize(
    "text",
    [
        doubling(40),
        guards_of_guards(30, 30),
        "createMachine(" + "[" * 50_000,
        "createMachine({ a: " + "-" * 2000 + "1 })",
        "createMachine({" + "a: {" * 5000 + "}" * 5000 + "})",
        "createMachine({ a: " + "(" * 5000 + ")" * 5000 + "})",
        "let x = `" + "${" * 20_000,
        "createMachine({ id: 'm', states: { a: { entry: [" + "x," * 20_000 + "] } } })",
    ],
    ids=range(8),
)
def test_scripts(text):
    definition, findings = read(text, "xstate")
    assert definition is not None or findings


def test_templates():
    text = json.dumps({"initial": "", "map": {" " * n: [] for n in range(1, 1300)}, "current": "", "reason": ""})
    assert any(finding.code == "SB111" for finding in read(text, "sm")[1])


@pytest.mark.parametrize("format", ["xstate", "mermaid", "plantuml"])
def test_large_charts_are_written(format):
    on = {f"e{number}": f"s{number % 400}" for number in range(10)} | {"e.a": "s1", "e": "s2"}
    states = {f"s{number}": {"on": on} for number in range(400)}
    assert dump({"id": "m", "initial": "s0", "states": states}, format)
