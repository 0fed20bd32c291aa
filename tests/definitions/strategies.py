"""Things that are nearly definitions, and things that are nothing like one."""

from __future__ import annotations

from hypothesis import strategies as st

WORDS = """
    id initial states on always entry exit invoke target guard actions set unset append raise enqueue emit log src queue
    input onDone onError retry timeout attempts backoff context events payload type properties default required meta
    description tags history retain version params data event final object string integer A B n x * a.* go done.invoke.A
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
        st.sampled_from(["set", "unset", "append", "raise", "enqueue", "emit", "log", "type", "params"]),
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
    optional={"src": scalars, "id": scalars, "input": trees, "onDone": transitions, "retry": trees, "timeout": scalars},
)
states = st.dictionaries(
    st.sampled_from(["A", "B"]) | st.text(max_size=5),
    st.fixed_dictionaries(
        {},
        optional={
            "on": st.dictionaries(
                st.sampled_from(["go", "*", "a.*", "done.invoke.A", ""]), transitions | scalars, max_size=3
            ),
            "always": transitions,
            "entry": actions,
            "invoke": invokes | st.lists(invokes, max_size=2),
            "type": st.sampled_from(["final", "parallel", 3]),
        },
    ),
    max_size=3,
)
definitions = st.fixed_dictionaries(
    {"states": states | trees},
    optional={
        "id": scalars | st.just("m"),
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
    "instance.version % 2",
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
