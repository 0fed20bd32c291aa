"""Wrong shapes, unknown keys, names and numbers: each is named with its place and what to do."""

from __future__ import annotations

import pytest

from machines.engine.definitions import compile
from machines.engine.errors import DefinitionError
from tests.cases import for_each
from tests.engine.definitions.builders import codes, found, machine, with_action, with_guard, with_transition


@for_each("definition", [None, 3, "door", [], True, b"{}", object()])
def test_only_an_object_is_a_definition(definition):
    assert codes(definition) in (["SB104"], ["SB110"])


def test_missing_keys_are_all_named():
    assert codes({}) == ["SB106", "SB106", "SB106"]
    assert [line.split(":")[0] for line in found({})] == ["SB106 id", "SB106 states", "SB106 initial"]


def test_no_states_at_all_is_an_error():
    assert "SB106 states: the definition has no states" in found(machine({}))


@for_each(
    "definition, line",
    [
        (machine(staes={}), 'SB105 staes: no key "staes"; did you mean "states"?'),
        (machine(data={}), 'SB105 data: no key "data"; write "context"'),
        (with_transition({"gaurd": "n"}), 'SB105 states.A.on.go.gaurd: no key "gaurd"; did you mean "guard"?'),
        (with_transition({"cond": "n"}), 'SB105 states.A.on.go.cond: no key "cond"; write "guard"'),
        (with_transition(5), 'SB104 states.A.on.go: expected a transition, found a number; write {"target": "state"}'),
        (
            with_guard({"type": "isOpen"}),
            "SB104 states.A.on.go.guard: expected an expression in quotes, found an object",
        ),
        (with_guard(1), "SB104 states.A.on.go.guard: expected an expression in quotes, found a number"),
        (with_transition({"reenter": 1}), "SB104 states.A.on.go.reenter: expected true or false, found a number"),
        (with_transition({"target": None}), "SB104 states.A.on.go.target: expected a state's name, found null"),
        (machine(history=-1), "SB114 history: -1 is not between 0 and 10000"),
        (machine(history=True), "SB104 history: expected an integer, found true"),
        (machine(history=1.5), "SB104 history: expected an integer, found a number"),
        (machine(retain="soon"), "SB113 retain: not a duration; write a number and a unit"),
        (machine(retain=30), "SB104 retain: expected an age or an object, found a number"),
        (machine(retain="40000d"), "SB114 retain: 3456000000000 ms is not between 0 and"),
        (machine(retain={"finished": 30}), "SB113 retain.finished: not a duration"),
        (machine(retain={"most": -1}), "SB114 retain.most: -1 is not between 0 and"),
        (machine(retain={"archive": "no"}), "SB104 retain.archive: expected true or false, found text"),
        (machine(retain={"history": 5}), 'SB105 retain.history: no key "history"; write "history" beside "retain"'),
        (machine(retain={"dead": "a while"}), "SB113 retain.dead: not a duration"),
        (machine(id="a door"), 'SB107 id: the machine name "a door" must be a letter or _'),
        (machine(context={"class": 1}), 'SB107 context.class: the field name "class" must not be a word'),
        (machine(context={"_x": 1}), 'SB107 context._x: the field name "_x" must be a letter'),
        (machine(context=[]), "SB104 context: expected an object, found an array"),
        (machine(events={"done.x": {}}), 'SB107 events["done.x"]: the event name "done.x" must not start with done.'),
        (
            machine({"A ": {"on": {"x": "B"}}, "B": {"type": "final"}}),
            'SB107 states["A "]: the state name "A " must not',
        ),
        (machine({"A": {"type": "finale"}}), 'SB104 states.A.type: no type of state "finale"'),
        (machine({"A": {"tags": [1]}}), "SB104 states.A.tags[0]: expected a tag, found a number"),
        (machine({"A": None}), "SB104 states.A: expected a state, found null; write {}"),
        (machine({"A": {"on": {"": "A"}}}), 'SB107 states.A.on[""]: an event\'s name is empty; transitions without'),
        (machine({"A": {"on": {"a b": "A"}}}), 'SB107 states.A.on["a b"]: the event "a b" must not hold spaces'),
        (machine({"A": {"on": {"do*": "A"}}}), 'SB107 states.A.on["do*"]: the event "do*" must not hold a *'),
        (machine({"A": {"onDone": "A"}}), 'SB119 states.A.onDone: "onDone" belongs to an invoke, or to a state with'),
        (machine({"A": {"invoke": {}}}), 'SB106 states.A.invoke.src: "src" is missing'),
        (machine({"A": {"invoke": {"src": "a b"}}}), 'SB107 states.A.invoke.src: the handler name "a b" must be'),
        (machine({"A": {"invoke": {"src": "h", "queue": "q/"}}}), "SB107 states.A.invoke.queue: the queue name"),
        (machine({"A": {"invoke": {"src": "h", "id": "a b"}}}), 'SB107 states.A.invoke.id: the id "a b" must not hold'),
        (machine({"A": {"invoke": {"src": "h", "timeout": "1ms"}}}), "SB114 states.A.invoke.timeout: 1 ms is not"),
        (machine({"A": {"invoke": {"src": "h", "lease": "25h"}}}), "SB114 states.A.invoke.lease: 90000000 ms is not"),
        (machine({"A": {"invoke": {"src": "h", "priority": 10}}}), "SB114 states.A.invoke.priority: 10 is not"),
        (machine({"A": {"invoke": {"src": "h", "priority": True}}}), "SB104 states.A.invoke.priority: expected an int"),
        (
            machine({"A": {"invoke": {"src": "h", "priority": "wrong"}}}),
            "SB102 states.A.invoke.priority: no data field",
        ),
        (machine({"A": {"invoke": {"src": "h", "unique": 5}}}), "SB104 states.A.invoke.unique: expected an expression"),
        (machine({"A": {"invoke": {"src": "h", "unique": "wrong"}}}), "SB102 states.A.invoke.unique: no data field"),
        (machine({"A": {"invoke": {"src": "h", "delay": "soon"}}}), "SB113 states.A.invoke.delay: not a duration"),
        (machine({"A": {"invoke": {"src": "h", "attempts": 2}}}), 'SB105 states.A.invoke.attempts: no key "attempts"'),
        (
            machine({"A": {"invoke": {"src": "h", "retry": {"jitter": 1}}}}),
            "SB104 states.A.invoke.retry.jitter: expected",
        ),
        (
            machine({"A": {"invoke": {"src": "h", "retry": {"stop": "a b"}}}}),
            "SB107 states.A.invoke.retry.stop: the exc",
        ),
        (
            machine({"A": {"invoke": {"src": "h", "retry": {"stop": ["E"] * 21}}}}),
            "SB111 states.A.invoke.retry.stop: 21 exceptions",
        ),
        (machine({"A": {"invoke": {"src": "machine:x", "unique": "now"}}}), 'SB119 states.A.invoke.unique: "unique"'),
        (
            machine({"A": {"entry": {"enqueue": {"src": "h", "unique": "no"}}}}),
            "SB102 states.A.entry.enqueue.unique: no",
        ),
        (
            machine({"A": {"entry": {"enqueue": {"src": "h", "debounce": "5s"}}}}),
            'SB119 states.A.entry.enqueue.debounce: "debounce" needs "unique"',
        ),
        (machine({"A": {"invoke": {"src": "h", "debounce": "5s"}}}), "SB105 states.A.invoke.debounce: no key"),
        (machine({"A": {}}, queues={"q q": {}}), 'SB107 queues["q q"]: the queue name'),
        (machine({"A": {}}, queues={"q": {"concurrency": 0}}), "SB114 queues.q.concurrency: 0 is not between"),
        (machine({"A": {}}, queues={"q": {"rate": "fast"}}), "SB113 queues.q.rate: "),
        (machine({"A": {}}, queues={"q": {"rate": "0/s"}}), "SB113 queues.q.rate: "),
        (machine({"A": {}}, queues={"q": {"limit": 5}}), 'SB105 queues.q.limit: no key "limit"; write "concurrency"'),
        (machine({"A": {}}, queues=["q"]), "SB104 queues: expected an object of queues"),
        (machine({"A": {"invoke": {"src": "h", "timeout": 30}}}), "SB113 states.A.invoke.timeout: not a duration"),
        (machine({"A": {"invoke": {"src": "h", "retry": {"attempts": 0}}}}), "SB114 states.A.invoke.retry.attempts"),
        (machine({"A": {"invoke": {"src": "h", "input": "n"}}}), "SB104 states.A.invoke.input: expected an object of"),
    ],
)
def test_a_mistake_is_named_with_its_place(definition, line):
    assert any(finding.startswith(line) for finding in found(definition)), found(definition)


@for_each(
    "action, line",
    [
        ("lockIt", 'SB116 states.A.on.go.actions: the action "lockIt" is only a name'),
        ({}, "SB116 states.A.on.go.actions: an action has exactly one verb; here: none"),
        ({"set": {}, "log": "n"}, 'SB116 states.A.on.go.actions: an action has exactly one verb; here: "set", "log"'),
        ({"assign": {}}, 'SB116 states.A.on.go.actions.assign: no action "assign"; write "set"'),
        ({"sett": {}}, 'SB116 states.A.on.go.actions.sett: no action "sett"; did you mean "set"?'),
        ({"type": "sett", "params": {}}, 'SB116 states.A.on.go.actions.type: no action "sett"; did you mean "set"?'),
        ({"type": "set"}, 'SB106 states.A.on.go.actions.params: the action "set" has no params'),
        ({"set": "n"}, "SB104 states.A.on.go.actions.set: expected an object of fields and values, found text"),
        ({"unset": {}}, "SB104 states.A.on.go.actions.unset: expected a field's name, found an object"),
        ({"raise": 1}, "SB104 states.A.on.go.actions.raise: expected an event's name or an object, found a number"),
        ({"raise": {"data": {}}}, 'SB106 states.A.on.go.actions.raise.event: "event" is missing'),
        ({"raise": "done.invoke.x"}, "SB107 states.A.on.go.actions.raise: the event"),
        ({"enqueue": "mail"}, "SB104 states.A.on.go.actions.enqueue: expected an object with src, found text"),
        ({"enqueue": {}}, 'SB106 states.A.on.go.actions.enqueue.src: "src" is missing'),
        ({"enqueue": {"src": "h", "queue": "a b"}}, "SB107 states.A.on.go.actions.enqueue.queue: the queue name"),
        ({"emit": {}}, 'SB106 states.A.on.go.actions.emit.type: "type" is missing'),
        ({"emit": {"type": "x", "data": "n"}}, "SB104 states.A.on.go.actions.emit.data: expected an object of values"),
        (
            {"set": {"n": "1 +"}},
            'SB109 states.A.on.go.actions.set.n: the expression ends too early at character 4 of "1 +"',
        ),
        ({"set": {"n": ""}}, "SB109 states.A.on.go.actions.set.n: the expression is empty"),
        ({"set": {"n": "n.x()"}}, "SB120 states.A.on.go.actions.set.n: calling the method"),
    ],
)
def test_a_mistake_in_an_action_is_named(action, line):
    assert any(finding.startswith(line) for finding in found(with_action(action))), found(with_action(action))


@for_each(
    "action",
    [
        {"set": {"n": "n + 1", "name": "'x'"}},
        {"type": "set", "params": {"n": 1}},
        {"unset": "n"},
        {"unset": ["n", "name"]},
        {"append": {"tags": "name"}},
        {"raise": "next"},
        {"raise": {"event": "next", "data": {"a": "n"}}},
        {"enqueue": {"src": "mail", "queue": "outbox", "input": {"to": "name"}}},
        {"emit": {"type": "opened", "data": {"n": "n"}}},
        {"log": "name"},
        {"log": {"who": "name", "list": [1, "n", None]}},
        [{"set": {"n": 1}}, {"log": "n"}],
        [],
    ],
)
def test_every_spelling_of_an_action_is_accepted(action):
    assert found(with_action(action)) == []


@pytest.mark.parametrize("verb", ["spawn", "spawnChild", "stopChild"])
def test_what_a_later_release_brings_is_refused_as_not_yet(verb):
    (line,) = found(with_action({verb: "x"}))
    assert line.startswith(f"SB108 states.A.on.go.actions.{verb}:")
    assert "not yet" in line


def test_odd_names_stand_in_brackets_and_quotes_in_a_path():
    states = {'say "hi"\\': {"on": {"door.open": {"target": "x", "a.b": 1}}}}
    assert 'SB105 states["say \\"hi\\"\\\\"].on["door.open"]["a.b"]: no key "a.b"' in found(machine(states))


def test_findings_stand_in_document_order():
    definition = {"states": {"B": {"on": {"x": "?"}}, "A": {"on": {"x": "?"}}}, "initial": "?", "id": "?"}
    assert [line.split(":")[0] for line in found(definition)] == [
        "SB101 states.B.on.x",
        "SB101 states.A.on.x",
        "SB101 initial",
        "SB107 id",
    ]


def test_too_many_states_are_refused():
    assert "SB111 states: 501 states; at most 500 are allowed" in found(machine({f"S{n}": {} for n in range(501)}))


def test_more_findings_than_anyone_reads_are_counted():
    last = found({f"key{n}": 1 for n in range(1000)})[-1]
    assert "more findings are not shown" in last


def crowded(**states):
    """More warnings than are shown: states that nothing leads to."""
    return machine({"A": {}} | {f"S{n}": {"on": {"go": [{}, {}, {}]}} for n in range(300)} | states)


def test_warnings_that_are_not_shown_are_no_error():
    assert found(crowded())[-1].startswith("SB217")
    assert compile(crowded())


def test_no_error_hides_behind_warnings():
    definition = crowded(B={"always": "C"}, C={"always": "B"})
    assert [line for line in found(definition) if line.startswith("SB1")] == [
        'SB118 states.B.always: always transitions form an endless cycle: "B" → "C" → "B"'
    ]
    with pytest.raises(DefinitionError):
        compile(definition)
