"""The JSON Schema for editors agrees with what ``check`` says."""

from __future__ import annotations

import json
from pathlib import Path

from jsonschema import Draft202012Validator

from machines.engine.definitions import check, schema
from machines.engine.definitions.reading import actions
from tests.cases import for_each

from .builders import machine, player, with_action, with_guard, with_transition

VALIDATOR = Draft202012Validator(schema())
EXAMPLES = sorted((Path(__file__).parents[3] / "examples").glob("*.json"))
GOOD = [
    machine(),
    machine(context={"type": "object", "properties": {"a": {"type": ["string", "null"], "default": None}}}),
    machine(context={"a": 1, "b": None, "c": []}, events={"open": {"payload": {"x": "", "y": {"type": "integer"}}}}),
    machine(version=2, retain="30d", history=0, meta=[1], description="x"),
    machine(retain="30 days"),
    machine(retain={"finished": "30 days", "most": 100000, "archive": False, "dead": "90d", "log": "7 days"}),
    machine(schedules=[{"name": "daily", "when": {"cron": "0 0 * * *"}, "what": {"do": "create"}, "jitter": "5m"}]),
    machine(properties=[{"never": "False", "description": "nothing is out of reach"}]),
    machine(queues={"work": {"concurrency": 2, "rate": "5/s burst 20", "groups": {"rate": "2 / 10s burst 3"}}}),
    with_guard(True),
    with_transition(["B", {"target": ["B"], "reenter": True}]),
    with_action([{"set": {"n": 1}}, {"unset": "n"}, {"append": {"tags": "n"}}, {"raise": "next"}, {"log": None}]),
    with_action(
        [
            {"send": {"event": {"expr": "name"}, "to": "'#_parent'", "delay": "5s", "id": "x", "data": "n"}},
            {"send": {"event": "go", "to": {"machine": "m", "id": "name"}, "idlocation": "name", "delay": 10}},
            {"send": {"event": "go", "to": {"machine": "m", "id": "name"}, "delay": "2 hours"}},
            {"send": {"event": "go", "to": {"machine": "m", "id": "name"}, "delay": " 500 "}},
            {"cancel": "x"},
            {"cancel": {"expr": "name"}},
            {"if": [{"guard": "n > 1", "do": {"log": "n"}}, {"do": []}]},
            {"foreach": {"in": "tags", "item": "extra", "index": "n", "do": [{"block": {"log": "extra"}}]}},
            {"type": "raise", "params": {"event": {"type": "next"}, "delay": {"expr": "n"}}},
        ]
    ),
    player(),
    player(
        on={"out": {"target": ".off", "reenter": True}},
        after={"30s": "off", "1000": {"actions": {"log": "now"}}},
        errors="raise",
        output={"a": "now"},
        machines={"kid": machine()},
        invoke={"src": "machine:kid", "input": {}, "autoforward": True, "finalize": {"log": "event"}},
    ),
    {"id": "both", "type": "parallel", "states": {"A": {}, "B": {}}},
    with_action(
        [{"enqueue": {"src": "h", "input": {"a": "n"}}}, {"emit": {"type": "x"}}, {"type": "log", "params": "n"}]
    ),
]
BAD = [
    machine(queues={"work": {"groups": {"groups": {"concurrency": 1}}}}),
    None,
    {},
    machine({}),
    machine(id="a b"),
    machine(staes={}),
    machine(history=-1),
    machine(retain="soon"),
    machine(retain={"finished": 30}),
    machine(retain={"most": "all"}),
    machine(schedules=[{"name": "daily", "when": {"cron": "0 0 * * *"}}]),
    machine(schedules=[{"name": "daily", "when": "daily", "what": {}}]),
    machine(schedules={"daily": {}}),
    machine(retain={"logs": "7d"}),
    machine(events={"done.x": {}}),
    machine({" A": {}}),
    machine({"A": {"states": {}}}),
    machine({"A": {"type": "region"}}),
    machine({"A": {"type": "history", "history": "long"}}),
    machine({"A": {"initial": {"actions": []}, "states": {"B": {}}}}),
    machine({"A": {"after": {"1s": 5}}}),
    machine({"A": {"invoke": {"src": "machine:a b"}}}),
    machine(type="parallel"),
    machine(errors="ignore"),
    machine(machines={"kid": {}}),
    machine(events={"after.t1": {}}),
    machine(context={"trigger": 1}),
    with_action({"send": {"to": "n"}}),
    with_action({"send": {"event": "x", "delay": -1}}),
    with_action({"send": {"event": "x", "delay": "soon"}}),
    with_action({"cancel": {}}),
    with_action({"if": []}),
    with_action({"foreach": {"in": "tags", "do": []}}),
    machine({"A": {"on": {"a b": "A"}}}),
    machine({"A": {"invoke": {"queue": "q"}}}),
    machine({"A": {"invoke": {"src": "h", "timeout": 30}}}),
    machine(context={"_x": 1}),
    with_guard(3),
    with_transition({"gaurd": "n"}),
    with_transition(5),
    with_action("lock"),
    with_action({"set": {}, "log": 1}),
    with_action({"sett": {}}),
    with_action({"type": "set", "params": "x"}),
]


def test_the_schema_is_a_schema():
    Draft202012Validator.check_schema(schema())


@for_each("file", EXAMPLES)
def test_the_examples_fit(file):
    assert list(VALIDATOR.iter_errors(json.loads(file.read_text()))) == []


@for_each("definition", GOOD)
def test_what_the_check_accepts_fits(definition):
    assert [finding for finding in check(definition) if finding.is_error] == []
    assert list(VALIDATOR.iter_errors(definition)) == []


@for_each("definition", BAD)
def test_what_the_check_refuses_for_its_shape_does_not_fit(definition):
    assert any(finding.is_error for finding in check(definition))
    assert list(VALIDATOR.iter_errors(definition))


def test_both_know_the_same_verbs():
    assert set(schema()["$defs"]["typedAction"]["properties"]["type"]["enum"]) == set(actions.VERBS)
