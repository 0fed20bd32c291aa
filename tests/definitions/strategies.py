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
    st.just(10**5000),
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
        "id": scalars,
        "initial": scalars,
        "context": trees | st.just({"n": 0}),
        "events": st.dictionaries(st.sampled_from(["go", "a.b", ""]), trees, max_size=2),
        "history": scalars,
    },
)
