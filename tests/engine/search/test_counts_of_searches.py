"""tally against the pages of find, on random instances, moves and searches: the badge is the list."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from machines.engine import BadInput
from tests.engine.builders import NOW, door, fields, machine, publish

from .indexed import every, instances

LEAVES = ("Wait", "L1", "L2", "R1", "R2", "End")
OPEN = {"tags": ["open"]}
STATES = {
    "Wait": {"tags": ["open"], "on": {"go": "Work", "set": {"actions": {"set": {"serial": "event.serial"}}}}},
    "Work": {
        "type": "parallel",
        "states": {
            "L": {"initial": "L1", "states": {"L1": OPEN | {"on": {"left": "L2"}}, "L2": {"on": {"left": "L1"}}}},
            "R": {"initial": "R1", "states": {"R1": {"on": {"right": "R2"}}, "R2": OPEN | {"on": {"right": "R1"}}}},
        },
        "on": {"end": "End"},
    },
    "End": {"on": {"back": "Wait"}},
}  # fmt: skip
DATA = fields(serial={"type": "string", "default": ""}, plain="integer")
ACTORS = ("", "alice", "bob")
MOVE = st.tuples(
    st.sampled_from(["go", "left", "right", "end", "back", "set", "delete", "suspend"]),
    st.integers(0, 9),
    st.sampled_from(ACTORS),
    st.sampled_from(["", "S-1", "S-2", "T"]),
)
SEARCH = st.fixed_dictionaries(
    {},
    optional={
        "tag": st.just("open"),
        "version": st.integers(1, 2),
        "actor": st.sampled_from(ACTORS[1:]),
        "id_prefix": st.sampled_from(["i", "i1"]),
        "where": st.sampled_from(
            [{"serial": "S-1"}, {"serial": {"prefix": "S-"}}, {"serial": "T", "plain": 1}, {"plain": {"ge": 1}}]
        ),
        "older_than": st.integers(0, 40),
        "error": st.just("any"),
    },
)
INDEXES = st.sampled_from(
    [["serial", "plain", "instance.id"], ["serial", "plain", "instance.id", "instance.actor", "instance.version"]]
)


def definition(index, description):
    return machine("m", STATES, context=DATA, index=index, description=description)


def play(engine, count, moves, index):
    """Instances of two versions, moved; the moment after."""
    publish(engine, definition(index, "one"))
    for number in range(count):
        if number == count // 2:
            publish(engine, definition(index, "two"))
        engine.create("m", f"i{number}", {"serial": f"S-{number % 3}", "plain": 1}, actor=ACTORS[number % 3], now=NOW)
    for at, (verb, number, actor, serial) in enumerate(moves, start=1):
        here = engine.get("m", f"i{number}") if number < count and f"i{number}" in instances(engine) else None
        if here is None:
            continue
        if verb == "delete":
            engine.delete("m", here.id)
        elif verb == "suspend":
            engine.suspend("m", here.id, actor="bob", reason="r", now=NOW + at * 1_000)
        elif here.suspended is None and engine.explain("m", here.id, verb, {"serial": serial}).taken:
            engine.fire("m", here.id, verb, {"serial": serial}, actor=actor, now=NOW + at * 1_000)
    return NOW + len(moves) * 1_000


@settings(max_examples=25)
@given(
    count=st.integers(0, 10),
    moves=st.lists(MOVE, max_size=25),
    index=INDEXES,
    searches=st.lists(SEARCH, min_size=1, max_size=4),
    spread=st.booleans(),
)
def test_a_tally_is_what_the_pages_of_the_same_search_list(engine, many, count, moves, index, searches, spread):
    engine = many if spread else engine
    engine.client.delete(*engine.client.keys(f"{engine.keys.prefix}*"), "nothing")
    for one in (engine, many):
        one._catalog.forget("m")
    now = play(engine, count, moves, index)
    for terms in searches:
        tally = engine.tally("m", **terms, now=now)
        assert tally.complete
        assert tally.total == len(every(engine, **terms, now=now, limit=2)), terms
        tagged = {leaf for leaf in LEAVES if terms.get("tag") in (None, *STATES.get(leaf, {}).get("tags", ()))}
        for leaf in LEAVES:
            listed = every(engine, state=leaf, **terms, now=now, limit=2)
            assert tally.counts.get(leaf, 0) == len(listed), (leaf, terms)
            assert not listed or "tag" not in terms or leaf in tagged or leaf in ("L1", "R2")
        for state in ("Work", "Wait", "L2"):
            narrowed = engine.tally("m", state=state, **terms, now=now)
            assert narrowed.total == len(every(engine, state=state, **terms, now=now, limit=2)), (state, terms)


def test_past_its_bound_it_says_at_least(engine):
    publish(engine, door(), *(f"i{n:02}" for n in range(30)))
    engine.fire("door", "i29", "open", actor="alice")
    assert engine.tally("door", actor="alice").counts == {"Open": 1, "Shut": 0}
    some = engine.tally("door", version=1, most=10)
    assert (some.complete, some.total) == (False, 10)
    assert engine.tally("door", older_than=0).total == 30
    exact = engine.tally("door", most=1)
    assert (exact.complete, exact.total, exact.counts) == (True, 30, {"Open": 1, "Shut": 29})


@pytest.mark.parametrize(
    ("where", "found"),
    [
        ({"serial": {"prefix": "a" * 64}}, 3),
        ({"serial": {"prefix": "a" * 65}}, 2),
        ({"serial": {"prefix": "a" * 65 + "b"}}, 1),
        ({"serial": "a" * 64}, 1),
        ({"serial": {"prefix": "é"}}, 2),
        ({"plain": {"ge": 2, "lt": 4}}, 2),
        ({"plain": {"lt": 0}}, 1),
        ({"plain": 2**53 - 1}, 1),
        ({"plain": {"gt": 2**53 - 1}}, 0),
    ],
)
def test_what_an_index_cannot_tell_is_compared(engine, where, found):
    publish(engine, machine("m", STATES, context=DATA, index=["serial", "plain"]))
    texts = ["a" * 64, "a" * 65, "a" * 65 + "b", "é", "éa", ""]
    for number, (text, plain) in enumerate(zip(texts, [1, 2, 3, 4, 2**53 - 1, -1], strict=True)):
        engine.create("m", f"i{number}", {"serial": text, "plain": plain}, now=NOW)
    assert engine.tally("m", where=where).total == len(every(engine, where=where)) == found


@pytest.mark.parametrize(
    ("wanted", "found"), [([1, {"a": None}], 1), ([1], 1), ([], 1), ({"a": [1]}, 1), ({"b": 1}, 0), (None, 1), (1, 2)]
)
def test_lists_and_objects_are_compared_deeply(engine, wanted, found):
    context = fields(any={"type": ["array", "object", "integer", "boolean", "string", "null"]})
    publish(engine, machine("m", {"Wait": {"on": {"go": "Wait"}}}, context=context))
    for number, value in enumerate([[1, {"a": None}], [1], [], {"a": [1]}, {}, None, 1, 1, True, "[1]"]):
        engine.create("m", f"i{number}", {"any": value}, now=NOW)
    where = {"any": wanted}
    assert engine.tally("m", state="Wait", where=where).total == len(every(engine, state="Wait", where=where)) == found


def test_a_walk_goes_on_where_a_call_stopped(engine):
    publish(engine, door(index=["instance.id"]))
    partition = engine.keys.partition("door")
    engine.create("door", "i0", now=NOW)
    held, pipeline = engine.client.hgetall(partition.instance("i0")), engine.client.pipeline(transaction=False)
    for number in range(1, 5000):
        pipeline.hset(partition.instance(f"i{number}"), mapping=held)
        pipeline.zadd(partition.state("Shut"), {f"i{number}": NOW + number // 7})
        pipeline.zadd(partition.lookup("instance.id"), {f"si{number}\0i{number}": 0})
    pipeline.execute()
    assert engine.tally("door", version=1).counts["Shut"] == 5000
    assert engine.tally("door", id_prefix="i", version=1).counts["Shut"] == 5000
    assert engine.tally("door", id_prefix="i49").counts["Shut"] == 111


def test_what_find_refuses_it_refuses(engine):
    publish(engine, door(), "a")
    for terms, code in [({"id_prefix": "a"}, "SB416"), ({"state": "Opne"}, "SB412"), ({"tag": "x"}, "SB412")]:
        with pytest.raises(BadInput) as caught:
            engine.tally("door", **terms)
        assert caught.value.code == code
