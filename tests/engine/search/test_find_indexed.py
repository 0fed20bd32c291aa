"""find by indexed data fields: exact, prefix, range, combined; what the indexes hold, whatever happens."""

import pytest

from machines.engine import BadInput, EngineFault, Refused
from tests.cases import for_each
from tests.engine.builders import NOW, door, fields, machine, publish
from tests.engine.dumps import dump, unchanged

from .indexed import DATA, INDEX, MACHINE, STATES, assert_exact, every, ids, row


def test_a_value_a_prefix_or_a_range(engine):
    row(
        engine,
        {"serial": "ATV-1", "amount": -2.5, "note": "x"},
        {"serial": "ATV-2", "amount": 7, "active": True, "note": 5},
        {"serial": "ATV-10", "amount": 1e300},
        {"serial": "é-7", "amount": 0.1, "active": True},
        {},
    )

    @for_each(
        "where, found",
        [
            ({"serial": "ATV-1"}, [0]),
            ({"serial": "ATV"}, []),
            ({"serial": {"prefix": "ATV-1"}}, [0, 2]),
            ({"serial": {"prefix": "é"}}, [3]),
            ({"serial": {"ge": "ATV-10", "lt": "ATV-2"}}, [2]),
            ({"serial": {"gt": "ATV-10"}}, [1, 3]),
            ({"serial": {"le": "ATV-1"}}, [4, 0]),
            ({"amount": 7}, [1]),
            ({"amount": 7.0}, [1]),
            ({"amount": {"ge": -2.5, "lt": 7}}, [0, 4, 3]),
            ({"amount": {"gt": -2.5}}, [4, 3, 1, 2]),
            ({"amount": {"le": 0}}, [0, 4]),
            ({"amount": {"gt": 0, "le": 1e300}}, [3, 1, 2]),
            ({"active": True}, [1, 3]),
            ({"active": 1}, []),
            ({"note": "x"}, [0]),
            ({"note": 5}, [1]),
            ({"note": {"ge": 0}}, [1]),
            ({"active": True, "amount": {"lt": 1}}, [3]),
            ({"active": True, "note": None}, [3]),
        ],
    )
    def check(where, found):
        assert every(engine, where=where) == [f"i{n}" for n in found]
        assert every(engine, where=where, newest=True, limit=1) == [f"i{n}" for n in reversed(found)]
        assert_exact(engine)

    check()


def test_conditions_are_combined(engine):
    row(engine, *({"serial": f"S-{n % 3}", "amount": n} for n in range(12)))
    for id in ("i3", "i6"):
        engine.fire("m", id, "go", now=NOW + 60_000)
    engine.fire("m", "i9", "go", now=NOW + 61_000)
    engine.fire("m", "i9", "go", now=NOW + 61_000)
    serial = {"serial": "S-0"}
    assert every(engine, where=serial) == ["i0", "i3", "i6", "i9"]
    assert every(engine, where=serial, state="B") == ["i3", "i6"]
    assert every(engine, where=serial | {"amount": {"gt": 3}}, state="B") == ["i6"]
    assert every(engine, where=serial, tag="open") == ["i0", "i3", "i6"]
    assert every(engine, where=serial, tag="open", state="C") == []
    assert every(engine, where=serial, older_than=30, now=NOW + 61_000) == ["i0"]
    assert every(engine, where=serial, version=1) == ["i0", "i3", "i6", "i9"]
    assert every(engine, where=serial, version=2) == []
    assert every(engine, tag="open", id_prefix="i1") == ["i1", "i10", "i11"]
    assert every(engine, id_prefix="i1", where={"amount": {"lt": 11}}) == ["i1", "i10"]


def test_a_compound_state_and_regions_combine_with_data(engine):
    states = {
        "Work": {
            "type": "parallel",
            "states": {
                "L": {"initial": "L1", "states": {"L1": {"on": {"left": "L2"}}, "L2": {"on": {"left": "L1"}}}},
                "R": {"initial": "R1", "states": {"R1": {"on": {"right": "R2"}}, "R2": {}}},
            },
            "on": {"end": "End"},
        },
        "End": {"type": "final"},
    }
    row(engine, {"serial": "a"}, {"serial": "ab"}, definition=machine("m", states, context=DATA, index=INDEX))
    engine.fire("m", "i0", "left", now=NOW + 50_000)
    prefix = {"serial": {"prefix": "a"}}
    assert every(engine, where=prefix, state="L2") == ["i0"]
    assert every(engine, where=prefix, state="Work") == ["i0", "i1"]
    assert every(engine, where=prefix, state="Work", older_than=40, now=NOW + 60_000) == ["i1"]
    assert every(engine, where={"serial": "a"}, state="R1", older_than=40, now=NOW + 60_000) == ["i0"]
    engine.fire("m", "i0", "end")
    assert every(engine, where=prefix, state="Work") == ["i1"]
    assert_exact(engine)


@pytest.mark.parametrize("newest", [False, True])
def test_pages_stay_put_while_data_changes(many, newest):
    row(many, *({"serial": f"S-{n:02}"} for n in range(30)))
    found, cursor, moved = [], None, 0
    while True:
        page = many.find("m", where={"serial": {"prefix": "S-"}}, limit=4, cursor=cursor, newest=newest)
        found += ids(page)
        cursor = page.cursor
        if cursor is None:
            break
        for id in ids(page)[:2]:  # those seen go to where the pages come from
            many.fire("m", id, "set", {"serial": "S-99" if newest else "S-"})
            moved += 1
        many.delete("m", ids(page)[2])
    assert found == [f"i{n}" for n in (reversed(range(30)) if newest else range(30))]
    assert moved == 14
    assert_exact(many)


def test_many_of_one_value_are_paged_in_the_order_of_their_ids(many):
    row(many, *({"serial": "same"} for _ in range(25)))
    assert every(many, where={"serial": "same"}, limit=3) == sorted(f"i{n}" for n in range(25))


def test_long_texts_are_found_by_all_of_them(engine):
    long = "x" * 64
    texts = [long, long + "a", long + "b", "x" * 62 + "😀", "x" * 62 + "z", "x" * 63 + "😀"]
    row(engine, *({"serial": text} for text in texts))
    for text in texts:
        for where, holds in [
            ({"serial": text}, lambda held, text=text: held == text),
            ({"serial": {"prefix": text}}, lambda held, text=text: held.startswith(text)),
            ({"serial": {"ge": text}}, lambda held, text=text: held >= text),
            ({"serial": {"lt": text}}, lambda held, text=text: held < text),
            ({"serial": {"gt": text, "le": "y"}}, lambda held, text=text: text < held <= "y"),
        ]:
            assert set(every(engine, where=where)) == {f"i{n}" for n, held in enumerate(texts) if holds(held)}, where
    assert_exact(engine)


def test_a_search_that_compares_many_goes_on_by_its_cursor(engine):
    publish(engine, MACHINE)
    engine.create("m", "i0000", {"serial": "same"}, now=NOW)
    partition = engine.keys.partition("m")
    held, pipeline = engine.client.hgetall(partition.instance("i0000")), engine.client.pipeline(transaction=False)
    filters = (7, 1999, 6050)  # one of them the last that a round looks at
    for number in range(6100):
        id = f"i{number:04}"
        pipeline.hset(partition.instance(id), mapping=held | ({"plain": 1} if number in filters else {}))
        pipeline.zadd(partition.lookup("serial"), {f"ssame\0{id}": 0})
    pipeline.execute()
    first = engine.find("m", where={"serial": "same", "plain": 1}, limit=5)
    assert (ids(first), first.cursor is None) == (["i0007", "i1999"], False), "six thousand were looked at"
    assert every(engine, where={"serial": "same", "plain": 1}, limit=2) == ["i0007", "i1999", "i6050"]


# What the indexes hold


def test_whatever_happens_to_an_instance_the_indexes_are_exact(many):
    row(many, *({"serial": f"S-{n}", "note": n} for n in range(8)))
    many.fire("m", "i0", "go", {"serial": "T", "amount": 3})
    many.fire("m", "i0", "go")
    many.fire("m", "i0", "drop")
    many.force("m", "i1", "C", data={"serial": "forced", "note": None, "active": True}, actor="a", reason="r")
    many.suspend("m", "i2", actor="a", reason="r")
    many.resume("m", "i2", actor="a", reason="r")
    many.delete("m", "i3")
    many.reset("m", "i6", actor="a", reason="r")
    many.edit("m", "i7", {"serial": "edited", "note": None}, actor="a", reason="r")
    with pytest.raises(Refused):
        many.fire("m", "i4", "drop")
    with pytest.raises(Refused):
        many.fire("m", "i4", "set", {"serial": 5})
    many.fire_many([("m", "i5", "set", {"serial": f"many-{n}"}) for n in range(5)])
    assert_exact(many)
    assert every(many, where={"serial": {"prefix": "S-"}}) == ["i2", "i4"]
    assert every(many, where={"note": {"ge": 0}}) == ["i2", "i4", "i5"]
    assert every(many, where={"serial": "many-4"}) == ["i5"]
    assert every(many, where={"serial": ""}) == ["i6"]


@pytest.mark.parametrize("key", ["history", "flow", "state", "lookup"])
def test_a_step_that_fails_leaves_the_indexes_as_they_were(engine, key):
    row(engine, {"serial": "was", "amount": 1})
    partition = engine.keys.partition("m")
    place = {
        "history": partition.history("i0"),
        "flow": partition.flow,
        "state": partition.state("B"),
        "lookup": partition.lookup("amount"),
    }[key]
    engine.client.delete(place)
    engine.client.set(place, "foreign")
    with unchanged(engine), pytest.raises(EngineFault):
        engine.fire("m", "i0", "go", {"serial": "is", "amount": 2})
    assert every(engine, where={"serial": "was"}) == ["i0"]


def test_a_birth_that_is_refused_is_in_no_index(engine):
    publish(engine, MACHINE)
    with unchanged(engine), pytest.raises(BadInput):
        engine.create("m", "x", {"serial": "s", "nope": 1})


def test_children_that_end_with_their_parent_leave_the_indexes(engine):
    child = machine("child", {"On": {"exit": {"set": {"n": "n + 1"}}}}, context={"n": 1}, index=["n", "instance.id"])
    publish(engine, child)
    publish(engine, machine("p", {"W": {"invoke": {"src": "machine:child"}, "on": {"stop": "E"}}, "E": {}}), "x")
    engine.tick()
    assert len(every(engine, "child", where={"n": 1})) == 1
    engine.fire("p", "x", "stop")
    engine.tick()
    assert every(engine, "child", where={"n": {"ge": 0}}) == []
    assert_exact(engine, "child", ["n", "instance.id"])


def test_a_machine_without_indexes_has_no_key_of_them(engine):
    publish(engine, door(), "a")
    engine.fire("door", "a", "open")
    assert not any(b":by:" in key for key in dump(engine))
    assert engine.client.hget(engine.keys.partition("door").meta, "by") is None


# Declared later


def test_what_was_made_before_is_indexed_by_its_next_step_or_by_reindex(many):
    old = {key: value for key, value in MACHINE.items() if key != "index"}
    row(many, *({"serial": f"S-{n}"} for n in range(40)), definition=old)
    publish(many, MACHINE)
    with pytest.raises(BadInput, match=r"call reindex\('m'\)") as caught:
        many.find("m", where={"serial": "S-1"})
    assert caught.value.code == "SB417"
    assert every(many, where={"serial": "S-1"}, state="A") == ["i1"]
    many.fire("m", "i1", "go")
    assert many.client.zscore(many._catalog.partition("m", "i1").lookup("serial"), "sS-1\0i1") == 0
    many.fire("m", "i2", "set", {"serial": "T"})
    many.create("m", "new", {"serial": "S-1"})
    many.create("m", "old", {"serial": "S-1"}, version=1)
    assert many.reindex("m") == 42
    assert every(many, where={"serial": "S-1"}) == ["i1", "new", "old"]
    many.fire("m", "i3", "set", {"serial": "T"})
    assert every(many, where={"serial": "T"}) == ["i2", "i3"]
    assert_exact(many)
    assert many.reindex("m") == 0, "nothing is missing"


def test_a_version_that_does_not_declare_it_keeps_it_all_the_same(engine):
    row(engine, {"serial": "a"})
    publish(engine, machine("m", STATES, context=DATA))
    engine.create("m", "x", {"serial": "b"})
    engine.fire("m", "i0", "set", {"serial": "c"})
    assert every(engine, where={"serial": {"gt": "a"}}) == ["x", "i0"]
    publish(engine, MACHINE | {"description": "again"})
    assert every(engine, where={"serial": {"gt": "a"}}) == ["x", "i0"]
    assert_exact(engine)


# Refused


def test_a_search_no_index_serves_is_refused(engine):
    context = fields(plain="integer", serial="string", amount="number")
    publish(engine, machine("m", {"A": {}}, context=context, index=["serial", "amount"]), "x")

    @for_each(
        "where, code",
        [
            ({"plain": 1}, "SB416"),
            ({"serial": None}, "SB416"),
            ({"nope": 1}, "SB413"),
            ({"serial": ["a"]}, "SB418"),
            ({"serial": {"gte": "a"}}, "SB418"),
            ({"serial": {"prefix": ""}}, "SB418"),
            ({"serial": {"prefix": "a", "lt": "b"}}, "SB418"),
            ({"serial": {"ge": 1, "lt": "b"}}, "SB418"),
            ({"serial": "a\0b"}, "SB418"),
            ({"serial": {"prefix": "\ud800"}}, "SB418"),
            ({"amount": {"ge": True}}, "SB418"),
            ({"amount": {"ge": float("inf")}}, "SB418"),
            ({"amount": float("nan")}, "SB418"),
            ({"amount": 10**400}, "SB418"),
        ],
    )
    def check(where, code):
        with pytest.raises(BadInput) as caught:
            engine.find("m", where=where)
        assert caught.value.code == code

    check()


def test_the_refusal_says_which_index_would_serve(engine):
    publish(engine, machine("m", {"A": {}}, context=fields(a="string", b="string"), index=["b"]), "x")
    with pytest.raises(BadInput, match=r'"index": \["a"\] in the definition would; or name a state \(indexed: b\)'):
        engine.find("m", where={"a": "x"})
    with pytest.raises(BadInput, match=r'"index": \["instance.id"\] in the definition would'):
        engine.find("m", id_prefix="x")
    assert every(engine, state="A", id_prefix="x") == ["x"]


def test_a_tag_no_version_has_is_named(engine):
    publish(engine, MACHINE)
    with pytest.raises(BadInput, match="no state with the tag 'opne'"):
        engine.find("m", tag="opne")


def test_a_cursor_belongs_to_its_search(engine):
    row(engine, {"serial": "a"}, {"serial": "b"})
    by_serial = engine.find("m", where={"serial": {"ge": "a"}}, limit=1).cursor
    by_state = engine.find("m", state="A", limit=1).cursor
    with pytest.raises(BadInput, match="that cursor was not made by find"):
        engine.find("m", where={"amount": 0}, cursor=by_serial)
    with pytest.raises(BadInput, match="that cursor was not made by find"):
        engine.find("m", where={"serial": {"ge": "a"}}, cursor=by_state)
