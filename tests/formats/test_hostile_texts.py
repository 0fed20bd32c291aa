"""Texts that were made to take long are answered.

The limit of each test is for what hangs: squares of these sizes take many minutes. Figures are in ``benchmarks/``.
"""

from __future__ import annotations

import json

import pytest

from machines.formats import dump, read
from tests.cases import for_each

pytestmark = pytest.mark.pure


def config(**state):
    return json.dumps({"id": "m", "initial": "a", "states": {"a": state}})


MANY = 15_000


@for_each(
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


def calls_of_calls(width: int, levels: int) -> str:
    functions = [f"const f{n} = (x) => ({', '.join([f'f{n + 1}(x)'] * width)}, 1);" for n in range(levels)]
    return "\n".join([*functions, f"const f{levels} = (x) => 1;", guarded("f0(1)")])


def guarded(code: str) -> str:
    return f"createMachine({{ id: 'm', initial: 'a', states: {{ a: {{ on: {{ X: {{ guard: () => {code} }} }} }} }} }})"


def lists_in_lists(levels: int) -> str:
    inner = "x0 > 1"
    for level in range(levels):
        inner = f"[{', '.join(map(str, range(30)))}].some((x{level}) => {inner})"
    return guarded(inner)


@for_each(
    "text",
    [
        calls_of_calls(100, 7),
        lists_in_lists(7),
        guarded("Array(100).fill(Array(100).fill(Array(100).fill(1)))"),
        doubling(40),
        guards_of_guards(30, 30),
        "createMachine(" + "[" * 50_000,
        "createMachine({ a: " + "-" * 2000 + "1 })",
        "createMachine({" + "a: {" * 5000 + "}" * 5000 + "})",
        "createMachine({ a: " + "(" * 5000 + ")" * 5000 + "})",
        "let x = `" + "${" * 20_000,
        "createMachine({ id: 'm', states: { a: { entry: [" + "x," * 20_000 + "] } } })",
    ],
)
def test_scripts(text):
    definition, findings = read(text, "xstate")
    assert definition is not None or findings


def lines(*some: str) -> str:
    return "\n".join(some)


DRAWN = [
    lines(*("state a {" for _ in range(100_000))),
    lines(*(f"a{n} --> a{n + 1} : e [x" for n in range(40_000))),
    lines("[*] --> a", *("a --> a : go [b(c) && !d] / e" for _ in range(20_000))),
    lines("state a {", *(f"b{n}\n--" for n in range(30_000)), "}"),
    lines("state f <<fork>>", *(f"f --> a{n}\na{n} --> j" for n in range(400)), "state j <<join>>"),
    lines(*(f"state f{n} <<fork>>\nf{n} --> f{n + 1}\nf{n} --> a{n}" for n in range(200))),
    "a --> b : " + "[" * 500_000,
    "state " + "#" * 1_000_000,
    lines(*("state " + "# " * 1900 for _ in range(250))),
    lines(*("a" + "-" * 3900 for _ in range(250))),
    lines(*("a --> b : e / " + "/ " * 1900 for _ in range(250))),
    lines("note left of a", *("text" for _ in range(200_000))),
    "accDescr {\n" * 50_000,
    lines("[*] --> a", "a : " + "<b" * 1900),
    lines(*("a : " + "entry " * 600 for _ in range(250))),
]


@for_each("body", DRAWN)
def test_diagrams(body):
    definition, findings = read(f"stateDiagram-v2\n{body}"[: 1 << 20], "mermaid")
    assert definition is not None or any(finding.is_error for finding in findings)
    assert all(finding.message for finding in findings)


@for_each("format", ["mermaid", "xstate"])
@for_each("text", ["", " ", "{", "<scxml/>", "def f(): pass", "\u202e" * 100, "a: [1, 2", "---\n---\n---"])
def test_something_else_entirely(text, format):
    definition, findings = read(text, format)
    assert definition is None
    assert any(finding.is_error for finding in findings)


def test_templates():
    text = json.dumps({"initial": "", "map": {" " * n: [] for n in range(1, 1300)}, "current": "", "reason": ""})
    assert any(finding.code == "SB111" for finding in read(text, "sm")[1])


@pytest.mark.parametrize("format", ["xstate", "mermaid"])
def test_large_charts_are_written(format):
    on = {f"e{number}": f"s{number % 400}" for number in range(10)} | {"e.a": "s1", "e": "s2"}
    states = {f"s{number}": {"on": on} for number in range(400)}
    assert dump({"id": "m", "initial": "s0", "states": states}, format)
