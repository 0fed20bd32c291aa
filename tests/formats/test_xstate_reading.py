"""XState configs, as people write them and as Stately exports them, become definitions."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from machines.engine.definitions import check
from machines.engine.errors import DefinitionError
from machines.formats import load, read
from tests.cases import for_each
from tests.engine.definitions.strategies import definitions, trees

from .test_xstate_versions import FOUR

pytestmark = pytest.mark.pure


def config(**changes):
    return {"id": "m", "initial": "a", "states": {"a": {}, "b": {}}} | changes


def reading(*, transition=None, **changes):
    """The definition and the findings as text; ``transition`` stands at states.a.on.GO."""
    states = {"a": {"on": {"GO": transition}}, "b": {}} if transition is not None else {"a": {}, "b": {}}
    definition, findings = read(json.dumps(config(states=states) | changes), "xstate")
    return definition, [f"{finding.code} {finding.path}: {finding.message}" for finding in findings]


def taken(transition, **changes):
    definition, findings = reading(transition=transition, **changes)
    return definition["states"]["a"]["on"]["GO"], findings


STATELY = {
    "id": "Video Player",
    "version": "1.0",
    "initial": "Loading",
    "context": {"tries": 0},
    "states": {
        "Loading": {
            "description": "fetching",
            "tags": ["busy"],
            "entry": {"type": "startTimer", "params": {"seconds": 5, "who": "me"}},
            "invoke": {
                "src": "load video",
                "id": "loader",
                "input": {"url": "https://x", "n": "{{ context.tries }}"},
                "onDone": [{"target": "Opened.Playing", "actions": []}],
                "onError": {"target": "#Video Player.Failed", "reenter": False},
            },
            "after": {"5000": {"target": "Failed"}, "PT1M30S": "Failed"},
        },
        "Opened": {
            "initial": "Paused",
            "states": {
                "Paused": {"on": {"PLAY": "Playing"}},
                "Playing": {"on": {"pause now": {"target": "Paused", "reenter": True}}},
                "back": {"type": "history", "history": "deep", "target": "Paused"},
            },
            "on": {"STOP": ".Paused", "AGAIN": {"target": "Opened", "reenter": True}},
        },
        "Failed": {"type": "final", "output": {"why": "no video", "tries": "{{ context.tries }}"}},
    },
}


def test_an_export_of_stately_becomes_a_definition_that_can_be_published():
    definition = load(json.dumps(STATELY), "xstate")
    assert not any(finding.is_error for finding in check(definition))
    assert definition == {
        "id": "Video-Player",
        "version": "1.0",
        "context": {"tries": 0},
        "initial": "Loading",
        "states": {
            "Loading": {
                "entry": [{"emit": {"type": "startTimer", "data": {"seconds": 5, "who": "'me'"}}}],
                "invoke": {
                    "src": "load-video",
                    "id": "loader",
                    "input": {"url": "'https://x'", "n": "tries"},
                    "onDone": [{"target": "Opened.Playing"}],
                    "onError": {"target": "#Failed"},
                },
                "after": {"5000": {"target": "Failed"}, "90000": "Failed"},
                "tags": ["busy"],
                "description": "fetching",
            },
            "Opened": {
                "initial": "Paused",
                "on": {"STOP": ".Paused", "AGAIN": {"target": "Opened", "reenter": True}},
                "states": {
                    "Paused": {"on": {"PLAY": "Playing"}},
                    "Playing": {"on": {"pause_now": {"target": "Paused", "reenter": True}}},
                    "back": {"type": "history", "history": "deep", "target": "Paused"},
                },
            },
            "Failed": {"type": "final", "output": {"why": "'no video'", "tries": "tries"}},
        },
    }


def test_every_name_that_had_to_change_is_a_finding():
    _, findings = read(json.dumps(STATELY), "xstate")
    assert [(finding.code, finding.path) for finding in findings] == [
        ("SB223", "id"),
        ("SB220", "states.Loading.entry"),
        ("SB223", "states.Loading.invoke.src"),
        ("SB223", 'states.Opened.states.Playing.on["pause now"]'),
    ]


@for_each(
    "guard, text",
    [
        ("{{ context.n > 3 }}", "n > 3"),
        ("{{ event.token === context.token && !context.done }}", "event.token == token and not done"),
        ("n > 3", "n > 3"),
        ("context.n > 3", "n > 3"),
        ({"type": "not", "guards": ["done"]}, "not (done)"),
        (
            {"type": "xstate.and", "params": {"guards": ["n > 1", {"type": "or", "guards": ["done", "n > 9"]}]}},
            "(n > 1) and ((done) or (n > 9))",
        ),
        ({"type": "stateIn", "stateValue": "#b"}, "In('b')"),
        ({"type": "stateIn", "params": {"stateValue": {"b": "c"}}}, "In('c')"),
        (True, True),
    ],
)
def test_guards_that_are_expressions_are_taken(guard, text):
    states = {
        "a": {"on": {"GO": {"target": "b", "guard": guard}}},
        "b": {"id": "b", "initial": "c", "states": {"c": {}}},
    }
    definition, findings = reading(states=states, context={"n": 0, "token": "", "done": False})
    assert definition["states"]["a"]["on"]["GO"]["guard"] == text
    assert not [line for line in findings if not line.startswith("SB224 states.a.on.GO.guard")]
    assert not [finding for finding in check(definition) if finding.is_error]


@for_each(
    "guard, draft",
    [
        ("isValid", "isValid"),
        ("Mode: First", "Mode: First"),
        ("inline:m.a#GO[-1]#guard[0]", "inline:m.a#GO[-1]#guard[0]"),
        ({"type": "isOver", "params": {"min": 3}}, "isOver"),
        ({"type": "not", "guards": ["is it"]}, "not (is it)"),
        ("{{ context.list.filter(x => x) }}", "context.list.filter(x => x)"),
        ("{{ ( }}", "("),
    ],
)
def test_a_guard_without_an_expression_is_an_error_and_the_draft_keeps_it(guard, draft):
    transition, findings = taken({"target": "b", "guard": guard})
    assert transition["guard"] == draft
    assert findings[0].startswith("SB140 states.a.on.GO.guard")
    with pytest.raises(DefinitionError):
        load(json.dumps(config(states={"a": {"on": {"GO": {"guard": guard}}}})), "xstate")


@for_each("guard", ["isValid", "is valid?", "inline:m.a#GO[-1]#guard[0]", "{{ f(x) }}", "{{ a => b }}"])
def test_a_draft_cannot_be_published_by_mistake(guard):
    definition, _ = reading(transition={"target": "b", "guard": guard})
    assert any(finding.is_error and finding.path == "states.a.on.GO.guard" for finding in check(definition))


def test_what_an_unknown_guard_is_called_with_stays_in_meta():
    transition, _ = taken({"guard": {"type": "isOver", "params": {"min": 3}}, "meta": {"x": 1}})
    assert transition["meta"] == {"x": 1, "xstate": {"guard": {"type": "isOver", "params": {"min": 3}}}}


@for_each(
    "action, ours",
    [
        ("track", {"emit": {"type": "track"}}),
        ({"type": "track it", "params": {}}, {"emit": {"type": "track_it"}}),
        (
            {"type": "track", "params": {"a": "{{ context.n }}", "b": "x"}},
            {"emit": {"type": "track", "data": {"a": "n", "b": "'x'"}}},
        ),
        ({"type": "track", "params": 5}, {"emit": {"type": "track", "data": {"params": 5}}}),
        ({"type": "log", "params": {"message": "hi"}}, {"emit": {"type": "log", "data": {"message": "'hi'"}}}),
        (
            {"type": "xstate.assign", "params": {"n": "{{ context.n + 1 }}", "name": "x"}},
            {"set": {"n": "n + 1", "name": "'x'"}},
        ),
        ({"type": "xstate.assign", "assignment": {"n": "{{({context}) => context.n * 2}}"}}, {"set": {"n": "n * 2"}}),
        ({"type": "xstate.assign", "assignment": "{{({event}) => ({n: event.v})}}"}, {"set": {"n": "event.v"}}),
        ({"type": "xstate.raise", "params": {"event": {"type": "X"}}}, {"raise": "X"}),
        ({"type": "xstate.raise", "event": "X y"}, {"raise": "X_y"}),
        (
            {"type": "xstate.raise", "params": {"event": {"type": "X", "v": "{{ event.v }}"}}},
            {"raise": {"event": "X", "data": {"v": "event.v"}}},
        ),
        (
            {"type": "xstate.raise", "params": {"event": {"type": "X"}, "delay": 100, "id": "t"}},
            {"send": {"event": "X", "delay": 100, "id": "t"}},
        ),
        (
            {"type": "xstate.raise", "params": {"event": "{{ ({context}) => ({type: 'X', n: context.n}) }}"}},
            {"raise": {"event": "X", "data": {"n": "n"}}},
        ),
        (
            {"type": "xstate.sendTo", "params": {"actorRef": "kid", "event": {"type": "PING"}, "delay": "PT5S"}},
            {"send": {"event": "PING", "to": "'#_kid'", "delay": 5000}},
        ),
        (
            {"type": "xstate.sendTo", "to": "kid", "event": {"type": "PING"}, "delay": 0, "id": ""},
            {"send": {"event": "PING", "to": "'#_kid'"}},
        ),
        ({"type": "xstate.sendParent", "params": {"event": "DONE"}}, {"send": {"event": "DONE", "to": "'#_parent'"}}),
        ({"type": "xstate.send", "event": "X"}, {"send": {"event": "X"}}),
        (
            {"type": "xstate.forwardTo", "params": {"to": "kid"}},
            {"send": {"event": {"expr": "trigger.name"}, "data": "event", "to": "'#_kid'"}},
        ),
        ({"type": "xstate.cancel", "params": {"sendId": "t"}}, {"cancel": "t"}),
        ({"type": "xstate.cancel", "sendId": "{{ context.name }}"}, {"cancel": {"expr": "name"}}),
        ({"type": "xstate.log", "params": {"message": "{{ context.n }}"}}, {"log": "n"}),
        ({"type": "xstate.log", "expr": "hello", "label": "at"}, {"log": {"label": "'at'", "message": "'hello'"}}),
        (
            {"type": "xstate.emit", "params": {"event": {"type": "note", "n": 1}}},
            {"emit": {"type": "note", "data": {"n": 1}}},
        ),
        (
            {
                "type": "xstate.choose",
                "conds": [{"cond": "n > 1", "actions": "a"}, {"actions": [{"type": "xstate.cancel", "sendId": "t"}]}],
            },
            {"if": [{"guard": "n > 1", "do": [{"emit": {"type": "a"}}]}, {"do": [{"cancel": "t"}]}]},
        ),
    ],
)
def test_actions_have_their_equivalent(action, ours):
    states = {"a": {"on": {"GO": {"actions": [action]}}}}
    definition, findings = reading(states=states, context={"n": 0, "name": ""})
    assert definition["states"]["a"]["on"]["GO"]["actions"] == ours
    assert not [line for line in findings if line < "SB2"]


@for_each(
    "action, said",
    [
        (
            {"type": "xstate.spawnChild", "params": {"src": "x"}},
            'SB141 states.a.on.GO.actions: the action "xstate.spawnChild"',
        ),
        ({"type": "xstate.stopChild"}, "SB141"),
        ({"type": "xstate.enqueueActions"}, "SB141"),
        ({"type": "xstate.somethingNew"}, "SB141"),
        ({"type": "xstate.raise"}, "SB141 states.a.on.GO.actions: no event is named"),
        ({"type": "xstate.assign"}, "SB140"),
        ({"type": "xstate.assign", "assignment": "{{(c, e) => { x = 1 }}}"}, "SB140"),
        ({"type": "xstate.assign", "params": {"n": "{{ fetch('x') }}"}}, "SB140 states.a.on.GO.actions.params.n"),
        ({"type": "xstate.custom", "value": "f()"}, 'SB140 states.a.on.GO.actions: the action "f()"'),
        ({"params": {}}, "SB141 states.a.on.GO.actions: the action has no type"),
        (5, "SB104"),
    ],
)
def test_what_cannot_be_said_is_an_error_with_its_place(action, said):
    _, findings = taken({"actions": action}, context={"n": 0})
    assert findings[0].startswith(said)


def test_fields_assigned_together_are_ordered_so_that_each_reads_the_old_value():
    action = {"type": "xstate.assign", "params": {"a": 0, "b": "{{ context.a }}"}}
    definition, _ = taken({"actions": action}, context={"a": 1, "b": 1})
    assert list(definition["actions"]["set"]) == ["b", "a"]
    swap = {"type": "xstate.assign", "params": {"a": "{{ context.b }}", "b": "{{ context.a }}"}}
    _, findings = taken({"actions": swap}, context={"a": 1, "b": 1})
    assert findings[0].startswith("SB224 states.a.on.GO.actions: the fields a, b are set from each other")


def test_data_that_is_used_and_not_declared_is_declared():
    action = {"type": "xstate.assign", "params": {"seen": "{{ context.other }}", "my-key": 1}}
    definition, findings = reading(transition={"actions": action})
    assert definition["context"] == {"other": None, "seen": None, "my_key": None} | definition["context"]
    assert [line.split()[0] for line in findings] == ["SB224", "SB224", "SB223", "SB224"]


def test_json_schemas_of_stately_declare_data_and_payloads():
    schemas = {
        "context": {"properties": {"n": {"type": "integer"}, "who": {"type": "string", "description": "a name"}}},
        "events": {
            "GO": {"properties": {"type": {"const": "GO"}, "to": {"type": "string"}}, "required": ["type", "to"]}
        },
    }
    definition, _ = reading(transition="b", context={"n": 3}, schemas=schemas)
    assert definition["context"] == {
        "type": "object",
        "properties": {"n": {"type": "integer", "default": 3}, "who": {"type": "string", "description": "a name"}},
    }
    assert definition["events"]["GO"]["payload"] == {
        "type": "object",
        "properties": {"to": {"type": "string"}},
        "required": ["to"],
    }
    assert not [finding for finding in check(definition) if finding.is_error]


def test_data_that_looks_like_a_schema_is_not_taken_for_one():
    definition, _ = reading(context={"type": "object", "properties": {"a": 1}})
    fields = definition["context"]["properties"]
    assert fields == {"type": {"default": "object"}, "properties": {"default": {"a": 1}}}


@for_each(
    "on, ours",
    [
        ({"*": "b", "x": "a"}, ["x", "*"]),
        ({"door.*": "b", "door.open": "a"}, ["door.open", "door.*"]),
        ({"a": "b", "b": "b"}, ["a", "b"]),
        ({"xstate.done.actor.kid": "b"}, ["done.invoke.kid"]),
        ({"xstate.error.actor.kid": "b"}, ["error.invoke.kid"]),
        ({"done.invoke.kid": "b", "error.platform.kid": "b"}, ["done.invoke.kid", "error.invoke.kid"]),
        ({"xstate.done.state.m.b": "b"}, ["done.state.b"]),
    ],
)
def test_events_are_tried_in_the_order_xstate_prefers_them(on, ours):
    definition, _ = reading(states={"a": {"on": on}, "b": {}})
    assert list(definition["states"]["a"]["on"]) == ours


def test_a_name_that_begins_another_is_a_finding():
    _, findings = reading(states={"a": {"on": {"door": "b"}}, "b": {"on": {"door.open": "a"}}})
    assert findings == ['SB224 states.a.on.door: here the event "door" also takes "door.open", as in SCXML']
    _, findings = reading(states={"a": {"on": {"x": {"target": "b", "guard": "1 > 2"}, "*": "b"}}, "b": {}})
    assert findings[0].startswith("SB224 states.a.on.x: when no guard of")


def test_what_ends_is_not_taken_for_anything():
    """Here ``onDone`` comes after all of ``on``, so ``*`` would take it."""
    state = {
        "initial": "c",
        "states": {"c": {"type": "final"}},
        "on": {"*": "b"},
        "onDone": "b",
        "invoke": [{"src": "x", "onDone": "b", "onError": "b"}, {"src": "y", "id": "kid", "onDone": "b"}],
    }
    definition, _ = reading(states={"a": state, "b": {}})
    found = definition["states"]["a"]
    assert list(found["on"]) == [
        "done.state.a",
        "done.invoke.a.1",
        "error.invoke.a.1",
        "done.invoke.kid",
        "*",
    ]
    assert found["invoke"] == [{"src": "x"}, {"src": "y", "id": "kid"}]
    assert "onDone" not in found
    assert not [finding for finding in check(definition) if finding.is_error or finding.code == "SB209"]


@for_each(
    "target, ours",
    [
        ("b", "b"),
        (".c", ".c"),
        ("#m.b", "#b"),
        ("#m.a.c", "#a.c"),
        ("#named", "#named"),
        (["#m.a.c"], "#a.c"),
        ("dotted\\.key", "#dotted.key"),
        ("#m", "#m"),
    ],
)
def test_targets_mean_the_same_states(target, ours):
    states = {
        "a": {"initial": "c", "on": {"GO": {"target": target}}, "states": {"c": {}}},
        "b": {"initial": "c", "states": {"c": {"id": "named"}, "d": {}}},
        "dotted.key": {},
    }
    definition, _ = reading(states=states)
    assert definition["states"]["a"]["on"]["GO"]["target"] == ours
    assert not [finding for finding in check(definition) if finding.is_error]


def test_parallel_states_enter_all_regions_and_say_so():
    definition, findings = reading(type="parallel", states={"a": {}, "b": {}})
    assert definition["type"] == "parallel"
    assert findings == ["SB221 initial: a parallel state enters all of its regions"]


@for_each(
    "changes, said",
    [
        ({"strict": True}, 'SB221 strict: the key "strict"'),
        ({"states": {"a": {"onn": {}}}}, 'SB221 states.a.onn: the key "onn"'),
        ({"states": {"a": {"on": {"X": {"gaurd": "x"}}}}}, "SB221 states.a.on.X.gaurd"),
        ({"states": {"a": {"type": "final", "on": {"X": "a"}}}}, "SB221 states.a.on: a final state has no way out"),
        ({"states": {"a": {"invoke": {"src": "x", "systemId": "s"}}}}, "SB221 states.a.invoke.systemId"),
        ({"states": {"a": {"invoke": {"src": "x", "onSnapshot": "a"}}}}, "SB141 states.a.invoke.onSnapshot"),
        ({"states": {"a": {"invoke": {}}}}, 'SB106 states.a.invoke.src: "src" is missing'),
        ({"states": {"a": {"after": {"soon": "a"}}}}, 'SB140 states.a.after.soon: the delay "soon"'),
        ({"states": {"a": {"type": "weird"}}}, 'SB104 states.a.type: no type of state "weird"'),
        ({"onDone": "a"}, "SB141 onDone: a machine that is done is done"),
        ({"queryLanguage": "jsonata"}, "SB224 queryLanguage"),
        ({"id": ""}, "SB223 id: the config has no id"),
        ({"types": {"events": {"type": "X"}}}, 'SB221 types: "types" is for TypeScript'),
        ({"states": {"a": {"activities": ["beep"], "always": {"guard": True}}}}, "SB141 states.a.activities"),
    ],
)
def test_nothing_is_dropped_in_silence(changes, said):
    _, findings = reading(**changes)
    assert findings[0].startswith(said)


def test_a_forbidden_transition_takes_the_event_and_does_nothing():
    definition, findings = reading(states={"a": {"on": {"X": None}}, "b": {"on": {"X": []}}})
    assert definition["states"] == {"a": {"on": {"X": {}}}, "b": {"on": {"X": []}}}
    assert findings == []


def test_stately_may_order_and_assign_in_short():
    chain = [{"target": "b", "order": 2}, {"target": "a", "order": 1, "context": {"n": "{{ context.n + 1 }}"}}]
    definition, _ = taken(chain, context={"n": 0})
    assert definition == [{"target": "a", "actions": {"set": {"n": "n + 1"}}}, {"target": "b"}]


@for_each("text", ["", "{", "[1]", "3", '"x"', "createMachine(", "hello there", "createMachine()"])
def test_what_is_no_config_is_refused(text):
    with pytest.raises(DefinitionError) as caught:
        load(text, "xstate")
    assert caught.value.findings[0].code in ("SB131", "SB104")


@given(definitions | trees)
def test_whatever_it_is_given_it_answers(value):
    try:
        text = json.dumps(value)
    except (TypeError, ValueError):
        return
    definition, findings = read(text, "xstate")
    assert definition is None or isinstance(definition, dict)
    assert definition is not None or any(finding.is_error for finding in findings)


def places(value, path=()):
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield from places(item, (*path, key))


@settings(max_examples=200)
@given(st.data())
def test_any_part_of_a_config_may_be_anything(data):
    value = json.loads(json.dumps(data.draw(st.sampled_from([STATELY, FOUR]))))
    *way, last = data.draw(st.sampled_from(list(places(value))[1:]))
    at = value
    for key in way:
        at = at[key]
    odd = [
        "",
        "{{",
        "{{ x }}",
        "#",
        ".",
        [],
        {},
        [[]],
        None,
        5,
        True,
        {"type": 5},
        {"type": "xstate.raise"},
        "a.b",
        ["x"],
    ]
    at[last] = data.draw(st.sampled_from([*odd, {"a": 1}, {"target": 5}, [{"actions": [None]}], {"type": "and"}]))
    definition, findings = read(json.dumps(value), "xstate")
    check(definition)
    assert definition is not None or any(finding.is_error for finding in findings)


@given(st.text(max_size=80))
def test_any_text_is_read_or_refused(text):
    definition, findings = read(text, "xstate")
    assert definition is not None or any(finding.is_error for finding in findings)
