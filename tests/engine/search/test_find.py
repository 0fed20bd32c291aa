"""find: pages of instances by the time they entered their state."""

from dataclasses import replace

import pytest

from machines.engine import BadInput, UnknownMachine
from tests.cases import for_each
from tests.engine.builders import NOW, counter, door, machine, publish, started


def ids(page):
    return [instance.id for instance in page]


def all_pages(engine, name, **options):
    found, cursor = [], None
    for _ in range(200):
        page = engine.find(name, cursor=cursor, **options)
        found.append(ids(page))
        cursor = page.cursor
        if cursor is None:
            return found
    raise AssertionError("the pages never end")


def row(engine, *ids, step=1000):
    """Instances of ``door``, each made a second after the one before."""
    publish(engine, door())
    for number, id in enumerate(ids):
        engine.create("door", id, now=NOW + number * step)


def test_longest_staying_first(engine):
    row(engine, "c", "a", "b")
    assert ids(engine.find("door", state="Shut")) == ["c", "a", "b"]
    assert ids(engine.find("door", state="Shut", newest=True)) == ["b", "a", "c"]
    assert engine.find("door", state="Open").instances == []


def test_an_instance_comes_with_all_it_has(engine):
    started(engine, counter(), data={"n": 2})
    (found,) = engine.find("counter")
    assert found == replace(engine.get("counter", "x"), outcome=None)


def test_without_a_state_all_states_are_merged(engine):
    row(engine, "a", "b", "c", "d")
    engine.fire("door", "b", "open", now=NOW + 10_000)
    engine.fire("door", "a", "open", now=NOW + 9_000)
    assert ids(engine.find("door")) == ["c", "d", "a", "b"]
    assert all_pages(engine, "door", limit=1) == [["c"], ["d"], ["a"], ["b"]]
    assert all_pages(engine, "door", limit=3, newest=True) == [["b", "a", "d"], ["c"]]


@pytest.mark.parametrize("newest", [False, True])
def test_instances_of_one_moment_are_paged_in_the_order_of_their_bytes(engine, newest):
    names = ["a", "B", "b", "é", "Z", "😀", "a:1", "a b", "aa"]
    row(engine, *names, step=0)
    pages = all_pages(engine, "door", state="Shut", limit=2, newest=newest)
    assert [id for page in pages for id in page] == sorted(names, key=str.encode, reverse=newest)


@pytest.mark.parametrize("limit", [1, 2, 3, 7, 10, 11])
def test_every_page_but_the_last_is_full_and_the_last_has_no_cursor(engine, limit):
    row(engine, *(f"i{n:02}" for n in range(10)))
    pages = all_pages(engine, "door", limit=limit)
    assert [id for page in pages for id in page] == [f"i{n:02}" for n in range(10)]
    assert all(len(page) == limit for page in pages[:-1])
    assert pages[-1], "no empty page at the end"


def test_an_empty_machine_has_one_empty_page(engine):
    publish(engine, door())
    page = engine.find("door")
    assert (page.instances, page.cursor, len(page)) == ([], None, 0)


@pytest.mark.parametrize("newest", [False, True])
def test_pages_stay_put_while_instances_move(engine, newest):
    row(engine, *(f"i{n:02}" for n in range(20)))
    first = engine.find("door", state="Shut", limit=5, newest=newest)
    moved = {"i03", "i04", "i05", "i15", "i16", ids(first)[-1]}
    for id in moved:
        engine.fire("door", id, "open", now=NOW + 50_000)
    engine.create("door", "new", now=NOW + 60_000)
    rest, cursor = [], first.cursor
    while cursor:
        page = engine.find("door", state="Shut", limit=4, cursor=cursor, newest=newest)
        rest += ids(page)
        cursor = page.cursor
    expected = [f"i{n:02}" for n in range(20) if f"i{n:02}" not in moved | set(ids(first))]
    assert [id for id in rest if id != "new"] == (expected[::-1] if newest else expected)


@pytest.mark.parametrize("newest", [False, True])
def test_thousands_of_one_moment_are_found_once_each(engine, newest):
    publish(engine, door())
    state = engine.keys.partition("door").state("Shut")
    names = [f"n{n:04}" for n in range(2500)]
    engine.create("door", "one", now=NOW)
    held = engine.client.hgetall(engine.keys.partition("door").instance("one"))
    pipeline = engine.client.pipeline(transaction=False)
    for name in names:
        pipeline.hset(engine.keys.partition("door").instance(name), mapping=held)
    pipeline.zadd(state, dict.fromkeys(names, NOW))
    pipeline.execute()
    found = [id for page in all_pages(engine, "door", state="Shut", limit=400, newest=newest) for id in page]
    assert found == sorted([*names, "one"], reverse=newest)


def test_older_than_counts_from_now(engine):
    row(engine, "a", "b", "c")
    assert ids(engine.find("door", older_than=1, now=NOW + 2000)) == ["a", "b"]
    assert ids(engine.find("door", older_than=0.5, now=NOW + 2000, newest=True)) == ["b", "a"]
    assert ids(engine.find("door", older_than=60)) == ["a", "b", "c"], "the server's clock is years on"
    assert ids(engine.find("door", older_than=2.001, now=NOW + 2000)) == []


def test_where_compares_data_as_expressions_do(engine):
    context = {"n": 0, "flag": False, "tags": [], "any": None}
    publish(engine, machine("m", {"A": {}}, context=context))
    engine.create("m", "a", {"n": 1, "flag": True, "tags": ["x"], "any": 1})
    engine.create("m", "b", {"n": 1, "any": True})
    engine.create("m", "c", {"n": 0, "any": {"k": [1]}})
    for where, found in [
        ({"n": 1}, {"a", "b"}),
        ({"n": 1, "flag": True}, {"a"}),
        ({"any": 1}, {"a"}),
        ({"any": True}, {"b"}),
        ({"tags": []}, {"b", "c"}),
        ({"any": {"k": [1]}}, {"c"}),
        ({"n": 5}, set()),
    ]:
        assert set(ids(engine.find("m", state="A", where=where))) == found, where


def test_a_search_that_has_to_look_far_goes_on_by_its_cursor(engine):
    publish(engine, counter())
    engine.create("counter", "i0000", {"n": 0}, now=NOW)
    partition = engine.keys.partition("counter")
    others, filters = engine.client.hgetall(partition.instance("i0000")), {3, 60, 6019}
    pipeline = engine.client.pipeline(transaction=False)
    for number in range(6100):
        pipeline.hset(partition.instance(f"i{number:04}"), mapping=others | {"n": 7 if number in filters else 0})
        pipeline.zadd(partition.state("On"), {f"i{number:04}": NOW + number})
    pipeline.execute()
    first = engine.find("counter", state="On", where={"n": 7}, limit=3)
    assert ids(first) == ["i0003", "i0060"], "six thousand were looked at"
    found = [id for page in all_pages(engine, "counter", state="On", where={"n": 7}, limit=2) for id in page]
    assert found == ["i0003", "i0060", "i6019"]


def test_a_limit_that_is_none_is_bad_input(engine):
    publish(engine, door())

    @for_each("limit", [0, 1001, -1, "5", 1.5, None])
    def check(limit):
        with pytest.raises(BadInput, match="limit is a whole number from 1 to 1000"):
            engine.find("door", limit=limit)

    check()


def test_the_largest_page_is_allowed(engine):
    row(engine, "a")
    assert ids(engine.find("door", limit=1000)) == ["a"]


def test_a_cursor_of_somebody_elses_making_is_bad_input(engine):
    publish(engine, door())

    @for_each("cursor", ["x", "W10", "eyJhIjogMX0", "é", "WyJ4IiwgImEiXQ", "WzEsMiwzXQ", "WyJuYW4iLCAiYSJd"])
    def check(cursor):
        with pytest.raises(BadInput, match="that cursor was not made by find"):
            engine.find("door", state="Shut", cursor=cursor)

    check()


@pytest.mark.parametrize("older_than", ["5", float("nan"), float("inf"), True])
def test_older_than_is_a_number_of_seconds(engine, older_than):
    publish(engine, door())
    with pytest.raises(BadInput, match="older_than is a number of seconds"):
        engine.find("door", older_than=older_than)


def test_a_state_or_field_that_no_version_has_is_named(engine):
    started(engine, machine("m", {"Old": {}}, context={"was": 0}))
    publish(engine, machine("m", {"New": {}}, context={"n": 0}))
    engine.delete("m", "x")
    assert ids(engine.find("m", state="Old", where={"was": 0, "n": 0})) == []
    with pytest.raises(BadInput, match="machine 'm' has no state 'Nwe'; it has: New, Old"):
        engine.find("m", state="Nwe")
    with pytest.raises(BadInput, match="machine 'm' declares no data field 'm'; it has: n, was"):
        engine.find("m", where={"m": 1})


def test_an_unknown_machine_is_named(engine):
    with pytest.raises(UnknownMachine):
        engine.find("gate")
    with pytest.raises(UnknownMachine):
        engine.find("gate", state="Open")


def test_a_machine_that_was_wiped_from_the_server_is_unknown(engine):
    row(engine, "a")
    for key in engine.client.scan_iter(match=f"{engine.keys.prefix}*"):
        engine.client.delete(key)
    with pytest.raises(UnknownMachine):
        engine.find("door", state="Shut")
    row(engine, "b")
    assert ids(engine.find("door", state="Shut")) == ["b"]


def test_a_state_no_version_has_is_told_from_one_without_instances(engine):
    row(engine, "a")
    assert engine.find("door", state="Open").instances == []
    with pytest.raises(BadInput, match="no state 'Opne'; it has: .*Open") as caught:
        engine.find("door", state="Opne")
    assert caught.value.code == "SB412"


def test_a_field_no_version_declares_is_told_from_one_nobody_has(engine):
    publish(engine, counter())
    engine.create("counter", "a", now=NOW)
    with pytest.raises(BadInput, match="declares no data field 'conut'") as caught:
        engine.find("counter", where={"conut": 1})
    assert caught.value.code == "SB413"
