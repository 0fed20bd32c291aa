"""``createMachine({...})`` in JavaScript and TypeScript: read as data, never run."""

from __future__ import annotations

import json

import pytest

from machines.engine import Engine
from machines.engine.definitions import check
from machines.engine.errors import DefinitionError
from machines.formats import load, read
from tests.cases import for_each

EXPORT = """\
import { setup, assign, raise, sendTo, and, not } from "xstate";

const WAIT = 300;
const machineStates = { done: { type: "final" as const } };

export const machine = setup({
  types: { context: {} as { n: number }, events: {} as { type: "next" } | { type: "set"; v: string } },
  guards: {
    isBig: ({ context, event }, params: { min: number }) => context.n > params.min && event.v === "x",
    isTwo: function ({ context }) { const twice = context.n * 2; return twice === 4; },
    isSmall({ context }) { return context!.n < 2; },
    both: and(["isTwo", not("isSmall")]),
  },
  delays: { timeout: WAIT, growing: ({ context }) => context.n * 100 },
  actions: {
    increment: assign({ n: ({ context }) => context.n + 1 }),
    add: assign({ n: ({ context }, params: { by: number }) => context.n + params.by }),
    track: ({ context }) => { console.log(context); },
  },
}).createMachine({
  /** @xstate-layout N4IgpgJg5mDOIC5QBcD2FUDoCSA7 */
  id: "counter",
  context: { n: 0, who: null },
  initial: "idle",
  states: {
    idle: {
      on: {
        next: [
          { target: "busy", guard: { type: "isBig", params: { min: 3 } }, actions: ["increment", "track"] },
          { target: "busy", guard: "both" },
          { actions: [{ type: "add", params: { by: 2 } }] },
        ],
        set: { actions: assign(({ context, event }) => ({ n: event.v, who: event.user?.name })) },
        say: { actions: raise(({ event }) => ({ type: "next", v: event.v }), { delay: 100 }) },
        ping: { actions: sendTo("kid", { type: "PING" }) },
        nothing: undefined,
      },
      after: { timeout: "busy", growing: { target: "busy" } },
    },
    busy: {
      invoke: {
        src: "load", id: "kid",
        input: ({ context }) => ({ n: context.n, fixed: [1, `text`, -2] }),
        onDone: { target: "done", actions: assign({ who: ({ event }) => event.output.name }) },
        onError: { target: "idle", actions: assign({ who: ({ event }) => event.error.message }) },
      },
    },
    ...machineStates,
  },
} satisfies object);
"""


@pytest.fixture(scope="module")
def counter():
    definition, _ = read(EXPORT, "xstate")
    return definition


@pytest.mark.pure
def test_an_export_in_typescript_is_read_with_its_implementations(counter):
    idle = counter["states"]["idle"]
    assert idle["on"] == {
        "next": [
            {
                "target": "busy",
                "guard": "n > 3 and event.v == 'x'",
                "actions": [{"set": {"n": "n + 1"}}, {"emit": {"type": "track"}}],
            },
            {"target": "busy", "guard": "(n * 2 == 4) and (not (n < 2))"},
            {"actions": {"set": {"n": "n + 2"}}},
        ],
        "set": {"actions": {"set": {"n": "event.v", "who": "None if event.user == None else event.user.name"}}},
        "say": {"actions": {"send": {"event": "next", "data": {"v": "event.v"}, "delay": 100}}},
        "ping": {"actions": {"send": {"event": "PING", "to": "'#_kid'"}}},
        "nothing": {},
    }
    assert idle["after"] == {"300": "busy", "n * 100": {"target": "busy"}}
    assert counter["states"]["busy"]["invoke"] == {
        "src": "load",
        "id": "kid",
        "input": {"n": "n", "fixed": "[1, 'text', -2]"},
        "onDone": {"target": "done", "actions": {"set": {"who": "event.result.name"}}},
        "onError": {"target": "idle", "actions": {"set": {"who": "event.error"}}},
    }
    assert counter["states"]["done"] == {"type": "final"}


@pytest.mark.pure
def test_only_what_is_code_for_its_own_sake_is_left_as_a_message():
    definition, findings = read(EXPORT, "xstate")
    assert [(finding.code, finding.path) for finding in findings] == [
        ("SB220", "states.idle.on.next[0].actions[1]"),
    ]
    assert not [finding for finding in check(definition) if finding.is_error]


@pytest.mark.redis
def test_it_runs(counter, engine: Engine):
    engine.publish(counter)
    instance = engine.create("counter", "one", now=1_000_000)
    for event in ("next", "next"):
        instance = engine.fire("counter", "one", event, {"v": "y"}, now=1_000_000)
    assert (instance.state, instance.data["n"]) == ("busy", 2)


FOUR = """
import { createMachine, assign, send, actions } from 'xstate';
const { log } = actions;
const fetchMachine = Machine({
  id: 'fetch', initial: 'idle', context: { tries: 0, user: undefined },
  states: {
    idle: { on: { FETCH: { target: 'loading', cond: (ctx, evt) => ctx.tries < 3 && evt.id }, 'SELF': 'idle' } },
    loading: {
      entry: [assign({ tries: ctx => ctx.tries + 1 }), send('TICK', { delay: 50 }), log((c) => c.tries), 'named'],
      invoke: {
        src: (context, event) => fetchUser(context.id),
        onDone: { target: 'idle', actions: assign({ user: (_, event) => event.data }) },
      },
      on: { TICK: [{ target: 'idle', cond: 'enough' }] }
    }
  }
}, { guards: { enough: (ctx) => ctx.tries >= 3 }, services: {} });
"""


@pytest.mark.pure
def test_a_script_of_version_4():
    definition, findings = read(FOUR, "xstate")
    idle, loading = definition["states"]["idle"], definition["states"]["loading"]
    assert idle["on"]["FETCH"] == {"target": "loading", "guard": "tries < 3 and truthy(event.id)"}
    assert idle["on"]["SELF"] == {"target": "idle", "reenter": True}
    assert loading["entry"] == [
        {"set": {"tries": "tries + 1"}},
        {"send": {"event": "TICK", "delay": 50}},
        {"log": "tries"},
        {"emit": {"type": "named"}},
    ]
    assert loading["invoke"]["src"] == "loading"
    assert loading["invoke"]["onDone"] == {"target": "idle", "actions": {"set": {"user": "event.result"}}}
    assert loading["on"]["TICK"] == [{"target": "idle", "guard": "tries >= 3"}]
    assert {finding.code for finding in findings} == {"SB224", "SB223", "SB220"}


def script(body: str, *, before: str = "") -> str:
    config = f"{{ id: 'm', initial: 'a', context: {{ n: 0 }}, states: {{ {body} }} }}"
    return f"{before}\nexport default createMachine({config});"


@pytest.mark.pure
@for_each(
    "body, before, state",
    [
        ("a: { ...shared }", "const shared = { tags: ['x'] };", {"tags": ["x"]}),
        ("a: { entry: [imported] }", "", {"entry": [{"emit": {"type": "imported"}}]}),
        (
            "a: { entry: () => { go() } }",
            "",
            {"entry": [{"emit": {"type": "inline", "data": {"code": "'() => { go() }'"}}}]},
        ),
        ("a: { after: { [`10`]: 'a' } }", "", {"after": {"10": "a"}}),
        (
            "a: { invoke: { src: fetchUser } }",
            "const fetchUser = fromPromise(() => 1);",
            {"invoke": {"src": "fetchUser"}},
        ),
        ("a: { invoke: { src: fromPromise(() => 1) } }", "", {"invoke": {"src": "a"}}),
        ("a: { on: { GO: { guard: stateIn('#m.a') } } }", "", {"on": {"GO": {"guard": "In('a')"}}}),
        ("a: { on: { GO: { guard: () => In('a') } } }", "", {"on": {"GO": {"guard": "In('a')"}}}),
        ("a: { meta: { text: 'a\\u0041\\n', n: 0x1F } }", "", {"meta": {"text": "aA\n", "n": 31}}),
    ],
)
def test_what_a_script_may_hold(body, before, state):
    definition, _ = read(script(body, before=before), "xstate")
    assert definition["states"]["a"] == state


@pytest.mark.pure
@for_each(
    "text, said",
    [
        ("let x = ;", "SB131 line 1, column"),
        ("const a = 1;", "SB131 definition: no createMachine({...}) is in the text"),
        (script("a: { ...other }"), "SB141 line 2, column"),
        (script("a: { after: { [x()]: 'a' } }"), "SB141 line 2, column"),
        (script("a: { on: { GO: { guard: ({context}) => { while (1) {} } } } }"), "SB140 states.a.on.GO.guard"),
        (
            script("a: { on: { GO: { guard: 'g' } } }") + "provide({guards: {g: () => fetch('x')}})",
            "SB140 states.a.on.GO.guard",
        ),
        (script("a: { on: { GO: { guard: 'g' } } }") + "provide({guards: {g: and(['h']), h: not('g')}})", "SB140"),
        (script("a: { entry: assign(() => { throw 1 }) }"), "SB140 states.a.entry"),
        (script("a: { on: { GO: { guard: ({context}) => context.n++ > 1 } } }"), "SB140"),
        (script("a: { on: { GO: { guard: (a, b, c, d) => a } } }"), "SB140"),
        (script("a: " + "{ states: { a: " * 40 + "{}" + "}}" * 40), "SB111"),
    ],
)
def test_what_a_script_may_not_hold(text, said):
    with pytest.raises(DefinitionError) as caught:
        load(text, "xstate")
    assert any(str(finding).startswith(said) for finding in caught.value.findings)


@pytest.mark.pure
def test_nothing_of_a_script_is_run(tmp_path):
    proof = tmp_path / "proof"
    text = script(f"a: {{ entry: require('fs').writeFileSync({json.dumps(str(proof))}, 'x') }}")
    read(text, "xstate")
    assert not proof.exists()
