"""Actions that send, take back, choose and repeat, as the functions library gets them."""

from __future__ import annotations

from machines.engine.definitions import compile, outline
from tests.cases import for_each
from tests.engine.definitions.builders import codes, found, with_action

N = ["data", "n"]


def compiled(action):
    return compile(with_action(action))["states"][0]["transitions"][0]["actions"]


@for_each("action, expected", [
        ({"send": "next"}, ["send", {"event": "next"}]),
        ({"send": {"event": {"expr": "name"}}}, ["send", {"event": ["data", "name"]}]),
        ({"send": {"event": "next", "to": "'#_parent'"}}, ["send", {"event": "next", "to": ["str", "#_parent"]}]),
        (
            {"send": {"event": "next", "to": {"machine": "door", "id": "name"}}},
            ["send", {"event": "next", "to": ["obj", ["machine", ["str", "door"]], ["id", ["data", "name"]]]}],
        ),
        ({"send": {"event": "next", "data": "n"}}, ["send", {"event": "next", "data": N}]),
        ({"send": {"event": "next", "data": {"a": "n"}}}, ["send", {"event": "next", "data": ["obj", ["a", N]]}]),
        ({"send": {"event": "next", "delay": 250}}, ["send", {"event": "next", "delay": ["num", 250]}]),
        ({"send": {"event": "next", "delay": "1.5s"}}, ["send", {"event": "next", "delay": ["num", 1500]}]),
        ({"send": {"event": "next", "delay": "20"}}, ["send", {"event": "next", "delay": ["num", 20]}]),
        ({"send": {"event": "next", "delay": {"expr": "n"}}}, ["send", {"event": "next", "delay": N}]),
        ({"send": {"event": "next", "id": "late"}}, ["send", {"event": "next", "id": "late"}]),
        ({"send": {"event": "next", "id": {"expr": "name"}}}, ["send", {"event": "next", "id": ["data", "name"]}]),
        ({"send": {"event": "next", "idlocation": "name"}}, ["send", {"event": "next", "idlocation": "name"}]),
        ({"send": {"event": "next", "type": "'scxml'"}}, ["send", {"event": "next", "type": ["str", "scxml"]}]),
        ({"type": "send", "params": {"event": {"type": "next"}}}, ["send", {"event": "next"}]),
        ({"raise": {"event": {"expr": "name"}}}, ["raise", ["data", "name"]]),
        ({"raise": {"event": {"type": "next"}}}, ["raise", "next"]),
        ({"raise": {"event": "next", "data": "n"}}, ["raise", "next", N]),
        ({"raise": {"event": "next", "delay": "1s"}}, ["send", {"event": "next", "delay": ["num", 1000]}]),
        ({"cancel": {"expr": "name"}}, ["cancel", ["data", "name"]]),
        ({"block": [{"log": "n"}]}, ["block", [["log", N]]]),
        (
            {"foreach": {"in": "tags", "item": "extra", "index": "n", "do": {"log": "extra"}}},
            ["foreach", {"in": ["data", "tags"], "item": "extra", "index": "n", "do": [["log", ["data", "extra"]]]}],
        ),
        (
            {"if": [{"guard": "n", "do": {"log": "n"}}, {"guard": True, "do": []}]},
            ["if", [{"guard": ["because", "n", N], "text": "n", "then": [["log", N]]}, {"then": []}]],
        ),
        ({"if": {"guard": "n", "do": []}}, ["if", [{"guard": ["because", "n", N], "text": "n", "then": []}]]),
    ])  # fmt: skip
def test_an_action_becomes_a_list(action, expected):
    assert compiled(action) == [expected]


def test_what_is_cancelled_is_the_id_of_a_send():
    actions = [{"send": {"event": "next", "delay": "1s", "id": "late"}}, {"cancel": "late"}]
    assert compiled(actions)[1] == ["cancel", "late"]
    assert found(with_action(actions)) == []


@for_each("action, line", [
        ({"send": 3}, "SB104 states.A.on.go.actions.send: expected an event's name or an object"),
        ({"send": {}}, 'SB106 states.A.on.go.actions.send.event: "event" is missing'),
        ({"send": {"evnt": "x"}}, 'SB105 states.A.on.go.actions.send.evnt: no key "evnt"; did you mean "event"?'),
        ({"send": {"event": "x", "target": "y"}}, 'SB105 states.A.on.go.actions.send.target: no key "target"; write'),
        ({"send": "a b"}, 'SB107 states.A.on.go.actions.send: the event name "a b" must not hold spaces'),
        ({"send": "done.invoke.x"}, 'SB107 states.A.on.go.actions.send: the event "done.invoke.x" is the'),
        ({"raise": "after.t1"}, 'SB107 states.A.on.go.actions.raise: the event "after.t1" is the'),
        ({"send": {"event": {"expr": 1}}}, "SB104 states.A.on.go.actions.send.event.expr: expected an expression"),
        ({"send": {"event": {"exp": "n"}}}, 'SB106 states.A.on.go.actions.send.event.expr: "expr" is missing'),
        ({"send": {"event": {"type": "x", "n": 1}}}, 'SB105 states.A.on.go.actions.send.event.n: no key "n"; write it'),
        ({"send": {"event": "x", "delay": "soon"}}, "SB113 states.A.on.go.actions.send.delay: not a duration"),
        ({"send": {"event": "x", "delay": -1}}, "SB114 states.A.on.go.actions.send.delay: -1 is not between 0"),
        ({"send": {"event": "x", "delay": "99999999d"}}, "SB114 states.A.on.go.actions.send.delay: "),
        ({"send": {"event": "x", "to": 3}}, "SB104 states.A.on.go.actions.send.to: expected an expression in quotes"),
        ({"send": {"event": "x", "to": {"machine": "m"}}}, 'SB106 states.A.on.go.actions.send.to.id: "id" is missing'),
        ({"send": {"event": "x", "to": {"machine": "a b", "id": "n"}}}, "SB107 states.A.on.go.actions.send.to.machine"),
        ({"send": {"event": "x", "idlocation": "nobody"}}, 'SB102 states.A.on.go.actions.send.event: no data field'),
        ({"send": {"event": "x", "idlocation": "n"}}, 'SB112 states.A.on.go.actions.send.event: "n" is integer,'),
        ({"send": {"event": "x", "id": ""}}, "SB107 states.A.on.go.actions.send.id: the send name"),
        ({"cancel": 3}, "SB104 states.A.on.go.actions.cancel: expected the send's name, found a number"),
        ({"if": []}, "SB106 states.A.on.go.actions.if: there is no case"),
        ({"if": [{"guard": "n"}]}, 'SB106 states.A.on.go.actions.if[0].do: "do" is missing'),
        ({"if": ["n"]}, "SB104 states.A.on.go.actions.if[0]: expected a case, found text"),
        ({"if": [{"guard": "m", "do": []}]}, 'SB102 states.A.on.go.actions.if[0].guard: no data field "m"'),
        ({"if": [{"do": {"set": {"m": 1}}}]}, 'SB102 states.A.on.go.actions.if[0].do.set.m: no data field "m"'),
        ({"foreach": "tags"}, "SB104 states.A.on.go.actions.foreach: expected an object with in, item and do"),
        ({"foreach": {"item": "n", "do": []}}, 'SB106 states.A.on.go.actions.foreach.in: "in" is missing'),
        ({"foreach": {"in": "tags", "item": "m", "do": []}}, 'SB102 states.A.on.go.actions.foreach: no data field "m"'),
        ({"foreach": {"in": "tags", "item": "n", "index": "m", "do": []}}, 'SB102 states.A.on.go.actions.foreach: no'),
        ({"foreach": {"in": "tags", "item": "n"}}, 'SB106 states.A.on.go.actions.foreach.do: "do" is missing'),
        ({"block": {"sett": {}}}, 'SB116 states.A.on.go.actions.block.sett: no action "sett"'),
        ({"sendTo": "x"}, 'SB116 states.A.on.go.actions.sendTo: no action "sendTo"; write "send"'),
    ])  # fmt: skip
def test_a_mistake_is_named_with_its_place(action, line):
    assert any(finding.startswith(line) for finding in found(with_action(action))), found(with_action(action))


def test_data_of_a_send_to_itself_is_held_against_the_declaration():
    events = {"next": {"payload": {"token": ""}}}
    send = {"send": {"event": "next", "data": {"tokn": "n"}}}
    assert "SB103" in codes(with_action(send, events=events))
    send["send"]["to"] = "'#_parent'"
    assert found(with_action(send, events=events)) == []


def test_cancelling_what_nobody_sends_is_a_doubt():
    late = {"send": {"event": "next", "delay": "1s", "id": "late"}}
    lines = found(with_action([late, {"cancel": "latte"}]))
    assert lines == [
        'SB214 states.A.on.go.actions[1].cancel: nothing is sent with the id "latte"; did you mean "late"?'
    ]
    computed = {"send": {"event": "next", "delay": "1s", "id": {"expr": "name"}}}
    assert found(with_action([computed, {"cancel": "latte"}])) == []


def test_a_case_after_the_else_never_happens():
    assert codes(with_action({"if": [{"do": []}, {"guard": "n", "do": []}]})) == ["SB211"]


def nested(levels):
    action = {"log": "n"}
    for _ in range(levels):
        action = {"block": action}
    return with_action(action)


def test_actions_inside_actions_have_a_bound():
    assert codes(nested(16)) == []
    assert codes(nested(17)) == ["SB111"]


def test_queues_and_raised_events_are_found_inside_other_actions():
    action = {"if": [{"guard": "n", "do": [{"enqueue": {"src": "mail"}}, {"raise": "nobody"}]}]}
    definition = with_action(action)
    assert compile(definition)["queues"] == ["mail"]
    assert codes(definition) == ["SB208"]
    assert outline(definition).states[0].enqueues == ("mail",)


@for_each(
    "action, text",
    [
        ({"send": "next"}, "send next"),
        (
            {"send": {"event": "next", "to": {"machine": "door", "id": "name"}, "delay": "30s", "data": {"a": "n"}}},
            "send next {a: n} to door/name after 30 s",
        ),
        ({"send": {"event": {"expr": "name"}, "delay": 10}}, "send name after 10 ms"),
        ({"cancel": {"expr": "name"}}, "cancel name"),
        (
            {"if": [{"guard": "n", "do": {"log": "n"}}, {"guard": "name", "do": {"unset": "n"}}, {"do": []}]},
            "if n: log n elif name: unset n else:",
        ),
        (
            {"foreach": {"in": "tags", "item": "extra", "do": [{"log": "extra"}, {"raise": "next"}]}},
            "for extra in tags: log extra; raise next",
        ),
        ({"block": [{"set": {"n": 1}}, {"log": "n"}]}, "n = 1; log n"),
    ],
)
def test_actions_read_as_short_text(action, text):
    assert outline(with_action(action)).states[0].transitions[0].actions == (text,)


def test_payload_fields_are_read_inside_other_actions_too():
    action = {"if": [{"guard": "event.a", "do": {"send": {"event": "next", "delay": {"expr": "event.b"}}}}]}
    assert outline(with_action(action)).states[0].transitions[0].reads == ("a", "b")
