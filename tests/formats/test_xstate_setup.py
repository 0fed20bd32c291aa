"""XState 5 as people write it: setup(), functions with types, data from the input, methods of arrays."""

from __future__ import annotations

import pytest

from machines.engine.definitions import check
from machines.formats import load, read
from tests.cases import for_each

pytestmark = pytest.mark.pure

SHOP = """
import { setup, assign, fromPromise } from 'xstate';

const LIMIT = 3;
const COLOURS = ['red', 'green'] as const;
type Event = { type: 'add'; item: string } | { type: 'pay' };
function isLarge(n: number) { return n > LIMIT; }
const total = (a: number, b: number): number => a + b;

export const shop = setup({
  types: { context: {} as Context, events: {} as Event, input: {} as { owner: string } },
  actors: { charge: fromPromise(async ({ input }: { input: { sum: number } }) => pay(input)) },
  guards: {
    isFull: ({ context }) => isLarge(context.count),
    isKnown: ({ event }) => { assertEvent(event, 'add'); return COLOURS.some((c) => c === event.item); },
    isMine: ({ context }, params: { name: string }) => context.owner === params.name,
    isNew: ({ context: { items }, event }) => items.every((item) => item !== event.item!),
  },
  actions: {
    store: assign({ items: ({ context, event }) => [...context.items, (event as any).item] }),
    put: assign((_, { key, size }: { key: string; size: number }) => ({ last: key, count: size })),
    fail: assign({ error: ({ event }) => (event.error as Error).message }),
    explain: assign(({ event }) => ({ error: event.error instanceof Error ? event.error.message : 'unknown' })),
  },
  delays: { patience: 30_000, longer: ({ context }) => context.count * 1000 },
}).createMachine({
  id: 'shop',
  initial: 'open',
  context: ({ input }) => ({
    owner: input.owner,
    visitor: input.visitor ?? 'nobody',
    label: `Shop of ${input.owner}`,
    size: input.size * 2,
    items: [] as string[],
    count: 0,
    last: null,
    error: undefined,
  }),
  states: {
    open: {
      on: {
        add: [
          { guard: 'isFull', target: 'paying' },
          { guard: { type: 'isMine', params: { name: 'ann' } }, actions: 'store' },
          { guard: 'isKnown', actions: { type: 'put', params: ({ event }) => ({ key: event.item, size: 1 }) } },
          { guard: 'isNew', actions: { type: 'put', params: { key: 'x', size: 2 } } },
        ],
        sum: { actions: assign({ count: ({ context, event }) => total(context.count, event.n) }) },
      },
      after: { patience: 'paying', longer: 'paying' },
    },
    paying: {
      invoke: {
        src: 'charge',
        input: ({ context }) => ({ sum: context.items.length, all: context.items.includes('red') }),
        onDone: 'paid',
        onError: { target: 'open', actions: ['fail', 'explain'] },
      },
    },
    paid: { type: 'final', output: ({ context }) => context },
  },
});
"""


def states(text: str):
    definition = load(text, "xstate")
    assert [str(found) for found in check(definition) if found.is_error] == []
    return definition["states"]


def test_setup_gives_names_their_meaning():
    found = states(SHOP)
    assert found["open"]["on"]["add"] == [
        {"target": "paying", "guard": "count > 3"},
        {"guard": "owner == 'ann'", "actions": {"set": {"items": "concat([], items, [event.item])"}}},
        {
            "guard": "'red' == event.item or 'green' == event.item",
            "actions": {"set": {"last": "event.item", "count": "1"}},
        },
        {"guard": "not contains(items, event.item)", "actions": {"set": {"last": "'x'", "count": "2"}}},
    ]
    assert found["open"]["after"] == {"30000": "paying", "count * 1000": "paying"}
    assert found["paying"]["invoke"] == {
        "src": "charge",
        "input": {"sum": "len(items)", "all": "contains(items, 'red')"},
        "onDone": "paid",
        "onError": {
            "target": "open",
            "actions": [{"set": {"error": "event.error"}}, {"set": {"error": "event.error"}}],
        },
    }


def test_data_that_comes_from_the_input_is_given_at_creation():
    definition = load(SHOP, "xstate")
    assert definition["context"] == {
        "owner": None,
        "visitor": "nobody",
        "label": None,
        "size": None,
        "items": [],
        "count": 0,
        "last": None,
        "error": None,
        "input_size": None,
    }
    assert definition["initial"] == {
        "target": "open",
        "actions": [{"set": {"label": "'Shop of ' + to_text(owner)", "size": "number(input_size) * 2"}}],
    }
    findings = [str(found) for found in read(SHOP, "xstate")[1]]
    assert any("given as data when an instance is created: input_size, owner, visitor" in found for found in findings)


def machine(context: str = "{ n: 0 }", guard: str = "true", before: str = "", more: str = "") -> str:
    return (
        f"{before}\ncreateMachine({{ id: 'm', initial: 'a', context: {context}, {more}"
        f"states: {{ a: {{ on: {{ go: {{ target: 'b', guard: ({{ context, event }}) => {guard} }} }} }}, b: {{}} }} }})"
    )


@for_each(
    "code, expression",
    [
        ("(event.n as number) > 3", "more(event.n, 3)"),
        ("event.user!.name === 'x'", "event.user.name == 'x'"),
        ("(<any>event).n === 1", "event.n == 1"),
        ("({ a: 1 } satisfies Thing).a === 1", "{'a': 1}.a == 1"),
        (
            "context.list.some((x) => x === event.a || event.b === x)",
            "contains(list, event.a) or contains(list, event.b)",
        ),
        ("context.list.findIndex((x) => x === 3) >= 0", "index_of(list, 3) >= 0"),
        ("[1, 2].every((x) => x < event.n)", "less(1, event.n) and less(2, event.n)"),
        ("['a', 'b'].includes(event.k)", "contains(['a', 'b'], event.k)"),
        ("context.list.find((x) => x === event.a) === 2", "(event.a if contains(list, event.a) else None) == 2"),
        ("[1, 2].map((x) => x + 1).length === 2", "len([1 + 1, 2 + 1]) == 2"),
        ("Array(3).fill(0).length === 3", "len([0, 0, 0]) == 3"),
        ("[].some((x) => x)", "False"),
    ],
)
def test_expressions(code, expression):
    definition, findings = read(machine("{ n: 0, list: [] }", code), "xstate")
    assert [str(found) for found in findings if found.is_error] == []
    assert definition["states"]["a"]["on"]["go"]["guard"] == expression


@for_each(
    "text, message",
    [
        (machine("() => makeIt()"), "the initial data is a function that cannot be translated"),
        (machine("makeIt()"), "the initial data is a call that cannot be translated"),
        (machine("initialData"), "the initial data is a name of the script that cannot be translated"),
        (machine(more="states2: 1, schemas: () => 1, "), ""),
        (machine(guard="context.list.filter((x) => x.ok).length > 2"), "the method filter() with such a function"),
        (machine(guard="context.list.some((x) => x.id === event.id)"), "expressions cannot loop"),
        (machine(guard="context.list.reduce((a, b) => a + b, 0) > 2"), "the method reduce() with such a function"),
        ("createMachine({ id: 'm', initial: 'a', states: () => 1 })", "expected an object of states, found a function"),
        (
            "createMachine({ id: 'm', initial: 'a', states: { a: { on: makeOn() } } })",
            "expected an object of events and transitions, found a call",
        ),
        (
            "createMachine({ id: 'm', initial: 'a', states: { a: {"
            " entry: assign({ x: ({ spawn }) => spawn('y') }) } } })",
            "spawn",
        ),
    ],
)
def test_what_cannot_be_said_is_called_what_it_is(text, message):
    findings = [str(found) for found in read(text, "xstate")[1] if found.is_error]
    assert any(message in found for found in findings) if message else not findings, findings


def test_a_machine_without_states_is_in_one():
    up = "{ actions: assign({ n: ({ context }) => context.n + 1 }) }"
    text = f"createMachine({{ id: 'm', context: {{ n: 0 }}, on: {{ up: {up} }} }})"
    definition = load(text, "xstate")
    assert definition["initial"] == "active"
    assert definition["states"] == {"active": {}}
    assert definition["on"] == {"up": {"actions": {"set": {"n": "n + 1"}}}}


def test_elements_of_a_page_may_stand_beside_the_machine():
    text = machine() + "\nexport function Page() { return <div className='x'>{1}</div>; }"
    assert set(states(text)) == {"a", "b"}


def test_a_constant_function_that_calls_itself_ends():
    text = machine(guard="f(1)", before="const f = (n) => f(n + 1);")
    assert any(found.is_error for found in read(text, "xstate")[1])
