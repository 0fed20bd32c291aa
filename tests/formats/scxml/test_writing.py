"""Definitions as SCXML: the text, what it does not carry, and that what is read back does the same."""

from __future__ import annotations

import json
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from machines.engine import DefinitionError, Engine, Refused
from machines.engine.definitions import check, compile
from machines.formats import dump, read
from tests.cases import for_each
from tests.engine.builders import NOW, machine
from tests.engine.connection import test_functions
from tests.engine.interpreter import test_expressions

from .builders import back

EXAMPLES = Path(__file__).parents[3] / "examples"
_numbers = count(1)


def said(definition: dict[str, Any]) -> list[str]:
    return [f"{found.code} {found.path}" for found in dump(definition, "scxml")[1]]


CHART = {
    "id": "lamp",
    "initial": "off",
    "errors": "raise",
    "context": {"type": "object", "properties": {"n": {"default": 0}, "l": {"default": []}}},
    "states": {
        "off": {
            "on": {"press": {"target": "on", "guard": "n < 3 and not In('on')", "actions": {"set": {"n": "n + 1"}}}}
        },
        "on": {
            "initial": "dim",
            "exit": {"log": {"label": "'left'", "value": "n"}},
            "states": {
                "dim": {"on": {"press": "bright"}},
                "bright": {"type": "final", "output": {"n": "n"}},
                "h": {"type": "history", "target": "dim"},
            },
            "on": {"done.state.on": {"target": "off", "actions": {"append": {"l": "event.n"}}}},
        },
    },
}


def test_the_text_is_what_one_would_write():
    assert dump(CHART, "scxml")[0] == (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        '<scxml xmlns="http://www.w3.org/2005/07/scxml" xmlns:sb="urn:signalbox:machines" version="1.0"'
        ' datamodel="ecmascript" name="lamp" initial="off">\n'
        "  <datamodel>\n"
        '    <data id="n" expr="0"/>\n'
        '    <data id="l" expr="[]"/>\n'
        "  </datamodel>\n"
        '  <state id="off">\n'
        '    <transition event="press" cond="n &lt; 3 &amp;&amp; !In(\'on\')" target="on">\n'
        '      <assign location="n" expr="n + 1"/>\n'
        "    </transition>\n"
        "  </state>\n"
        '  <state id="on" initial="dim">\n'
        "    <onexit>\n"
        '      <log label="left" expr="n"/>\n'
        "    </onexit>\n"
        '    <transition event="done.state.on" target="off">\n'
        '      <sb:action>{"append": {"l": "event.n"}}</sb:action>\n'
        "    </transition>\n"
        '    <state id="dim">\n'
        '      <transition event="press" target="bright"/>\n'
        "    </state>\n"
        '    <final id="bright">\n'
        "      <donedata>\n"
        '        <param name="n" expr="n"/>\n'
        "      </donedata>\n"
        "    </final>\n"
        '    <history id="h" type="shallow">\n'
        '      <transition target="dim"/>\n'
        "    </history>\n"
        "  </state>\n"
        "</scxml>\n"
    )


TABLES = [(module, text) for module in (test_expressions, test_functions) for text in module.VALUES]
DIFFERENT = {"1 // 0.1": "ECMAScript divides first, and rounds when it does"}


@pytest.fixture(scope="module")
def server(redis_url):
    engine = Engine.from_url(redis_url, prefix="written:")
    yield engine
    for key in engine.client.scan_iter(match="written:*"):
        engine.client.unlink(key)
    engine.client.close()


@for_each("module, text", [pair for pair in TABLES if pair[1] not in DIFFERENT])
def test_an_expression_is_worth_the_same_when_it_is_read_back(server, module, text):
    go = {"go": {"actions": {"set": {"out": text}}}}
    context = {"type": "object", "properties": {"out": {}}}
    definition = machine(f"rt{next(_numbers)}", {"A": {"on": go}, "B": {}}, context=context)
    server.create(server.publish(back(definition)).name, "x", now=NOW)
    found = server.fire(definition["id"], "x", "go", module.PAYLOAD, now=NOW).data.get("out")
    assert found == module.VALUES[text]


def steps(engine: Engine, definition: dict[str, Any], events: list[Any]) -> list[Any]:
    """What an instance is like after each event; a number is a wait in seconds."""
    now, found = NOW, []
    name = engine.publish(definition).name
    instance = engine.create(name, "x", now=now)
    found.append((instance.configuration, instance.data))
    for event in events:
        try:
            if isinstance(event, int):
                now += event * 1000
                engine.tick(now=now)
                instance = engine.get(name, "x")
            else:
                event, payload = event if isinstance(event, tuple) else (event, {})
                instance = engine.fire(name, "x", event, payload, now=now)
        except Refused as refusal:
            found.append(refusal.code)
        found.append((instance.configuration, instance.data))
    return found


def fields(**types: Any) -> dict[str, Any]:
    return {"type": "object", "properties": types}


IF = [{"guard": "tags", "do": {"set": {"n": -1}}}, {"guard": "n == 2", "do": []}, {"do": {"unset": "n"}}]
APPEND = {"append": {"tags": "one + at"}}
DEFINITIONS: dict[str, tuple[dict[str, Any], list[Any]]] = {
    "chart": (CHART, ["press", "press", "press", "press", "press", "press", "press"]),
    "typed data, and an action that fails": (
        machine(
            "typed",
            {"a": {"on": {"add": {"actions": {"set": {"n": "n + event.by", "s": "s + 'x'"}}}, "stop": "b"}}, "b": {}},
            context=fields(n={"type": "integer", "default": 1}, s={"type": ["string", "null"], "default": ""}),
            events={"add": {"payload": {"by": 1}}},
            history=5,
            description="counts",
        ),
        [("add", {"by": 2}), "add", "stop", "add"],
    ),
    "timers": (
        machine(
            "timed",
            {
                "a": {
                    "after": {
                        "2s": [{"target": "b", "guard": "n > 0"}, "c"],
                        "wait * 1000": {"actions": {"set": {"n": 1}}},
                    }
                },
                "b": {"on": {"back": "a"}},
                "c": {"on": {"back": "a"}, "after": {"500ms": "a"}},
            },
            context=fields(n={"default": 0}, wait={"default": 3}),
        ),
        [1, 1, "back", 3, 4, 1],
    ),
    "the machine itself as a target": (
        {
            "id": "again",
            "initial": "a",
            "context": {"n": 0},
            "entry": {"set": {"n": "n + 1"}},
            "states": {
                "a": {"on": {"go": "b"}},
                "b": {"on": {"up": {"target": "#again", "guard": "In('again')"}}},
            },
            "on": {"stay": "#again", "whole": {"target": "#again", "reenter": True}},
        },
        ["go", "up", "go", "stay", "go", "whole"],
    ),
    "a parallel machine": (
        {
            "id": "both",
            "type": "parallel",
            "context": {"n": 0},
            "entry": {"set": {"n": "n + 1"}},
            "on": {"reset": {"actions": {"set": {"n": 0}}}},
            "states": {
                "l": {"initial": "l1", "states": {"l1": {"on": {"go": "l2"}}, "l2": {"type": "final"}}},
                "r": {
                    "initial": "r1",
                    "states": {"r1": {"on": {"go": "r2"}}, "r2": {"on": {"end": "r3"}}, "r3": {"type": "final"}},
                },
            },
        },
        ["go", "reset", "end"],
    ),
    "names that are no ids": (
        machine(
            "named",
            {
                "on hold": {"on": {"go": "two words.inner"}},
                "two words": {
                    "initial": "inner",
                    "states": {"inner": {"on": {"go": "end"}}, "end": {"type": "final"}},
                    "onDone": "on hold",
                },
                "é": {},
            },
            context=fields(var={"default": 1}, new={"default": 2}),
        ),
        ["go", "go"],
    ),
    "states of one key": (
        machine(
            "twins",
            {
                "a": {"initial": "x", "states": {"x": {"on": {"go": "b"}}, "y": {"type": "final"}}, "onDone": "b"},
                "b": {"initial": "x", "states": {"x": {"on": {"go": "y"}}, "y": {"type": "final"}}, "onDone": "c"},
                "c": {},
            },
        ),
        ["go", "go"],
    ),
    "to itself and inside": (
        machine(
            "selves",
            {
                "a": {
                    "initial": "x",
                    "entry": {"set": {"n": "n + 1"}},
                    "on": {
                        "in": ".y",
                        "out": {"target": ".y", "reenter": True},
                        "me": "a",
                        "me!": {"target": "a", "reenter": True},
                    },
                    "states": {"x": {"on": {"stay": {"target": "x", "actions": {"set": {"n": "n + 10"}}}}}, "y": {}},
                }
            },
            context={"n": 0},
        ),
        ["in", "me", "stay", "out", "me!"],
    ),
    "everything an action can be": (
        machine(
            "acts",
            {
                "a": {
                    "entry": [{"block": [{"set": {"n": 1}}]}, {"block": [{"set": {"n": "n + 1"}}]}],
                    "on": {
                        "go": {
                            "actions": [
                                {"if": IF},
                                {"foreach": {"in": "[5, 6]", "item": "one", "index": "at", "do": APPEND}},
                                {"raise": {"event": "mine", "data": {"n": "n"}}},
                                {"send": {"event": {"expr": "'la' + 'ter'"}, "data": "[n]", "delay": "1s", "id": "s"}},
                                {"send": {"event": "never", "delay": 5000, "id": "t"}},
                                {"cancel": "t"},
                                {"enqueue": {"src": "mail", "input": {"n": "n"}}},
                                {"emit": {"type": "told", "data": {"n": "n"}}},
                                {"block": [{"log": "n"}]},
                                {"unset": "one"},
                            ]
                        },
                        "mine": {"actions": {"set": {"got": "event.n"}}},
                        "later": {"target": "b", "actions": {"set": {"got": "event"}}},
                    },
                },
                "b": {},
            },
            context=fields(n={}, tags={"default": [], "type": "array"}, one={}, at={}, got={}),
            errors="raise",
        ),
        ["go", 2],
    ),
}  # fmt: skip


@for_each("name", DEFINITIONS)
def test_what_is_read_back_does_the_same(engine, name):
    definition, events = DEFINITIONS[name]
    again = back(definition)
    assert [str(one) for one in check(again) if one.is_error] == []
    assert again["id"] == definition["id"]
    there = steps(engine, definition, events)
    for key in engine.client.scan_iter(match=f"{engine.keys.prefix}*"):
        engine.client.unlink(key)
    assert steps(engine, again, events) == there


@pytest.mark.parametrize("states", [{"a": {"on": {"x": "#m"}}}, {"a": {"id": "m.a", "on": {"x": "#m"}}}])
def test_the_machine_itself_stays_a_target(states):
    definition = {"id": "m", "initial": "a", "states": states}
    assert [state["on"] for state in back(definition)["states"].values()] == [{"x": "#m"}]


def test_a_machine_that_is_brought_along_may_lead_to_itself():
    kid = {"initial": "a", "states": {"a": {"on": {"x": {"target": "#m.kid", "guard": "In('m.kid')"}}}}}
    definition = machine("m", {"a": {"invoke": {"src": "machine:kid"}}}, machines={"kid": kid})
    again = back(definition)
    assert again["machines"]["kid"]["states"]["a"]["on"] == kid["states"]["a"]["on"]
    assert [str(one) for one in check(again) if one.is_error] == []


@for_each("path", sorted(EXAMPLES.glob("*.json")))
def test_the_examples_keep_their_shape(path):
    definition = json.loads(path.read_text())
    program, again = compile(definition), compile(back(definition))
    assert [state["name"] for state in again["states"]] == [state["name"] for state in program["states"]]
    assert [state.get("invoke") for state in again["states"]] == [state.get("invoke") for state in program["states"]]
    assert again["data"] == program["data"]
    assert again.get("events") == program.get("events")
    described = [state.get("description") for state in definition["states"].values()]
    assert [state.get("description") for state in back(definition)["states"].values()] == described


def test_machines_that_are_brought_along(engine):
    child = {
        "id": "c", "initial": "a", "context": {"n": 1}, "states": {"a": {"on": {"stop": "z"}}, "z": {"type": "final"}},
        "output": {"n": "n * 2"},
    }  # fmt: skip
    done = {"target": "b", "actions": {"set": {"n": "event.n"}}}
    states = {
        "a": {"invoke": {"src": "machine:kid", "input": {"n": "21"}, "autoforward": True, "onDone": done}},
        "b": {"invoke": {"src": {"expr": "instance.machine + '.other'"}, "onDone": "c"}},
        "c": {"invoke": {"src": "machine:elsewhere"}},
    }  # fmt: skip
    ends = {"initial": "z", "states": {"z": {"type": "final"}}}
    definition = machine("parent", states, context={"n": 0}, machines={"kid": child, "other": ends})
    again = back(definition)
    assert list(again["machines"]) == ["other", "kid"]
    assert again["states"]["c"]["invoke"] == {"src": "machine:elsewhere", "id": "c"}
    name = engine.publish(again).name
    engine.create(name, "x")
    engine.fire(name, "x", "stop")
    engine.tick()
    found = engine.get(name, "x")
    assert (found.configuration, found.data) == (["c"], {"n": 42})


@for_each(
    "change, found",
    [
        ({"context": {"n": 0}}, "SB222 context"),
        ({"history": 3}, "SB222 history"),
        ({"errors": "refuse"}, "SB224 "),
        ({"context": {"var": None}}, "SB223 context.var"),
        ({"states": {"a b": {}}, "initial": "a b"}, 'SB223 states["a b"]'),
        ({"states": {"a": {"tags": "t"}}}, "SB222 states.a"),
        ({"states": {"a": {"entry": {"emit": {"type": "t"}}}}}, "SB222 states.a.entry.emit"),
        ({"states": {"a": {"invoke": {"src": "work"}}}}, "SB222 states.a.invoke"),
        ({"states": {"a": {"invoke": {"src": "machine:m"}}}}, "SB222 states.a.invoke"),
        ({"states": {"a": {"entry": {"log": "random_token(3)"}}}}, "SB222 states.a.entry.log"),
        ({"states": {"a": {"after": {"1s": "a"}}}}, 'SB224 states.a.after["1s"]'),
        (
            {"states": {"a": {"entry": {"send": {"event": "e", "delay": {"expr": "1 + 1"}}}}}},
            "SB224 states.a.entry.send.delay.expr",
        ),
        ({"type": "parallel", "initial": None}, "SB224 "),
        ({"initial": {"target": "a", "actions": {"log": "1"}}}, "SB224 initial"),
        ({"states": {"a": {"initial": "b", "on": {"e": "a"}, "states": {"b": {}}}}}, "SB224 states.a.on.e"),
    ],
)
def test_what_scxml_does_not_carry_is_said(change, found):
    definition = {"id": "m", "initial": "a", "errors": "raise", "states": {"a": {}}} | change
    if definition["initial"] is None:
        del definition["initial"]
    assert found in said(definition)


def test_a_definition_with_errors_is_not_written():
    with pytest.raises(DefinitionError):
        dump({"id": "m", "initial": "nowhere", "states": {"a": {}}}, "scxml")


def test_what_is_ours_is_checked_when_it_is_read():
    spaces = 'xmlns="http://www.w3.org/2005/07/scxml" xmlns:sb="urn:signalbox:machines"'
    text = f"<scxml {spaces}>{{}}<state id='a'>{{}}</state></scxml>"
    for top, inside, code in [
        ("<sb:more>[1]</sb:more>", "", "SB104"),
        ('<sb:more>{"states": {}}</sb:more>', "", "SB104"),
        ("", '<sb:more>{"on": {}}</sb:more>', "SB104"),
        ("", "<onentry><sb:action>nothing</sb:action></onentry>", "SB144"),
        ("", '<invoke type="urn:signalbox:machines">x</invoke>', "SB144"),
    ]:
        assert [one.code for one in read(text.format(top, inside), "scxml")[1]] == [code]
