"""Things that are nearly definitions, and things that are nothing like one."""

from __future__ import annotations

from hypothesis import strategies as st

from machines.engine.definitions.reading.actions import VERBS

WORDS = """
    id initial states on always entry exit invoke target guard actions set unset append raise enqueue emit log src queue
    input onDone onError retry timeout attempts backoff context events payload type properties default required meta
    description tags history retain version params data event final object string integer A B n x * a.* go done.invoke.A
    send cancel if foreach block do in item index to delay expr machine machines errors output after parallel deep #A .B
"""
KEYS = WORDS.split()
EXPRESSIONS = ["n", "n + 1", "event.x", "'A'", "lenn(n)", "n <", "In('A')", "30s", "None", ""]
scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=8),
    st.sampled_from(KEYS + EXPRESSIONS),
    st.sampled_from([2**53, -(2**70)]),
    st.binary(max_size=3),
)
keys = st.one_of(st.sampled_from(KEYS), st.text(max_size=6), st.none(), st.integers(), st.floats(), st.booleans())
trees = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(keys, inner, max_size=6),
        st.tuples(inner, inner),
        st.sets(st.integers()),
    ),
    max_leaves=40,
)
actions = st.lists(
    st.dictionaries(
        st.sampled_from([*VERBS, "type", "params"]),
        trees,
        max_size=2,
    ),
    max_size=3,
)
transitions = st.lists(
    st.fixed_dictionaries(
        {}, optional={"target": scalars, "guard": scalars, "actions": actions | trees, "reenter": scalars}
    ),
    max_size=3,
)
invokes = st.fixed_dictionaries(
    {},
    optional={
        "src": scalars | st.sampled_from(["machine:A", {"expr": "n"}]),
        "id": scalars,
        "input": trees,
        "onDone": transitions,
        "retry": trees,
        "timeout": scalars,
        "finalize": actions,
    },
)
behaviour = {
    "on": st.dictionaries(st.sampled_from(["go", "*", "a.*", "done.invoke.A", ""]), transitions | scalars, max_size=3),
    "after": st.dictionaries(st.sampled_from(["1s", "1000", "n", "?"]), transitions | scalars, max_size=2),
    "always": transitions,
    "entry": actions,
    "invoke": invokes | st.lists(invokes, max_size=2),
    "type": st.sampled_from(["final", "parallel", "history", "compound", "atomic", 3]),
}


def holding(inner):
    """States whose states inside are those of another strategy."""
    body = behaviour | {
        "id": scalars | st.sampled_from(["A", "C"]),
        "initial": scalars | st.sampled_from(["A", ["A", "B"], {"target": "A"}]),
        "target": scalars | st.sampled_from(["A", "#B"]),
        "history": st.sampled_from(["deep", "shallow", None]),
        "output": trees,
        "onDone": transitions,
        "states": inner,
    }
    return st.dictionaries(
        st.sampled_from(["A", "B"]) | st.text(max_size=5), st.fixed_dictionaries({}, optional=body), max_size=3
    )


states = holding(holding(holding(trees) | trees) | trees)
definitions = st.fixed_dictionaries(
    {"states": states | trees},
    optional=behaviour
    | {
        "id": scalars | st.just("m"),
        "machines": st.dictionaries(st.sampled_from(["kid", ""]), trees, max_size=1),
        "errors": scalars | st.just("raise"),
        "output": trees,
        "initial": scalars | st.just("A"),
        "context": trees | st.just({"n": 0}),
        "events": st.dictionaries(st.sampled_from(["go", "a.b", ""]), trees, max_size=2),
        "history": scalars,
    },
)


STATES = ["A", "on hold", 'say "hi"', "😀", "a:b/c{d}"]
GUARDS = [
    True,
    "n < 3",
    "event.token == name and not In('A')",
    "len(tags) in [1, 2] or now > n",
    "instance.revision % 2",
]
ACTIONS = [
    {"set": {"n": "n + 1", "name": "event.token or random_token(6)"}},
    {"unset": ["n", "name"]},
    {"append": {"tags": {"at": "now", "who": ["name", None, 1.5]}}},
    {"raise": {"event": "go", "data": {"token": "name"}}},
    {"enqueue": {"src": "mail", "queue": "outbox", "input": {"n": "n"}}},
    {"emit": {"type": "moved"}},
    {"log": "instance.id"},
]
DATA = {"n": 0, "name": "", "tags": []}


@st.composite
def machines(draw):
    """Definitions that must be free of errors."""
    names = draw(st.lists(st.sampled_from(STATES), min_size=1, unique=True).filter(lambda names: "A" in names))
    some_actions = st.lists(st.sampled_from(ACTIONS), max_size=3)
    transition = st.fixed_dictionaries(
        {},
        optional={
            "target": st.sampled_from(names),
            "guard": st.sampled_from(GUARDS),
            "actions": some_actions,
            "reenter": st.booleans(),
        },
    )
    chain = st.sampled_from(names) | transition | st.lists(transition, max_size=3)
    ended = st.sampled_from(names) | st.builds(
        lambda target: {"target": target, "reenter": True}, st.sampled_from(names)
    )
    work = st.fixed_dictionaries(
        {"src": st.just("h")}, optional={"onDone": ended, "onError": ended, "timeout": st.just("5s")}
    )
    on = st.dictionaries(st.sampled_from(["go", "door.open", "door.*", "*"]), chain, max_size=3)
    busy = st.fixed_dictionaries({}, optional={"on": on, "invoke": work, "entry": some_actions, "exit": some_actions})
    final = st.fixed_dictionaries({"type": st.just("final")}, optional={"entry": some_actions})
    states = {name: draw(busy | final) for name in names}
    return {"id": "m", "initial": draw(st.sampled_from(names)), "context": DATA, "states": states}


CHART_ACTIONS = [
    {"send": {"event": "go", "to": "'#_parent'", "delay": "1s"}},
    {"send": {"event": {"expr": "name"}, "to": {"machine": "m", "id": "name"}, "idlocation": "name"}},
    {"cancel": {"expr": "name"}},
    {"if": [{"guard": "n > 1", "do": {"log": "trigger.name"}}, {"do": [{"block": {"set": {"n": "n + 1"}}}]}]},
    {"foreach": {"in": "tags", "item": "name", "index": "n", "do": [{"raise": {"event": "go", "data": "n"}}]}},
]


@st.composite
def charts(draw):
    """Definitions with states inside states that must be free of errors. Keys differ: each is the state's name."""
    count = draw(st.integers(min_value=2, max_value=12))
    names = [f"S{number}" for number in range(count)]
    waiting = list(names)
    top = _grown(draw, waiting, depth=0, least=1)
    while waiting:
        top[waiting.pop(0)] = {}
    for key in list(top):
        _furnish(draw, key, top[key], names)
    machine = {"id": "m", "context": DATA, "states": top}
    if draw(st.booleans()):
        machine["on"] = {"reset": {"target": draw(st.sampled_from(list(top)))}}
    if draw(st.booleans()) and not any(state.get("type") == "final" for state in top.values()):
        return machine | {"type": "parallel"}
    return machine | {"initial": draw(st.sampled_from(names))}


def _grown(draw, waiting, depth, least):
    """Takes names away from those waiting, and gives each a state with others inside or without."""
    states = {}
    for _ in range(draw(st.integers(min_value=least, max_value=3))):
        if not waiting:
            break
        name = waiting.pop(0)
        inside = _grown(draw, waiting, depth + 1, 0) if depth < 3 else {}
        kind = draw(st.sampled_from(["parallel", "compound"])) if inside else "atomic"
        states[name] = {"type": kind, "states": inside} if inside else {}
        if kind == "compound":
            states[name]["initial"] = draw(st.sampled_from(list(inside)))
    return states


def _furnish(draw, name, state, names):
    """Ways out, timers, work and histories."""
    targets = st.sampled_from([*names, *(f"#{other}" for other in names)])
    actions = st.lists(st.sampled_from(ACTIONS + CHART_ACTIONS), max_size=2)
    one = st.fixed_dictionaries({}, optional={"target": targets, "actions": actions, "reenter": st.booleans()})
    state["on"] = draw(st.dictionaries(st.sampled_from(["go", "*", "error.execution"]), one, max_size=2))
    if draw(st.booleans()):
        silent = st.fixed_dictionaries({"actions": st.lists(st.sampled_from(CHART_ACTIONS), max_size=1)})
        state["after"] = draw(st.dictionaries(st.sampled_from(["30s", "1000", "n * 10"]), silent | targets, max_size=2))
    if draw(st.booleans()):
        state["invoke"] = {"src": draw(st.sampled_from(["h", "machine:other"])), "onDone": draw(targets)}
    if "states" in state:
        state["onDone"] = draw(one)
        for key in list(state["states"]):
            _furnish(draw, key, state["states"][key], names)
        if draw(st.booleans()):
            history = {"type": "history", "history": draw(st.sampled_from(["shallow", "deep"]))}
            state["states"][f"{name} before"] = history
