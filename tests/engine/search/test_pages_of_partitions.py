"""Pages over many partitions are those of one sorted list, however the instances lie."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from machines.engine import Engine
from machines.engine.keys import choose_partition
from machines.engine.search.page_merge import compute_share
from tests.engine.builders import NOW, machine, publish

PARTITIONS = 8
CALLS = settings(max_examples=25)
IDS = [f"i{number}" for number in range(4000)]
OF_ONE = [id for id in IDS if choose_partition(id, PARTITIONS) == 3]


def boxes():
    return machine(
        "box",
        {"A": {"on": {"go": "B"}}, "B": {"on": {"go": "A"}}},
        context={"n": 0, "name": ""},
        index=["name"],
    )


def regions():
    """Every instance is in two states that it entered at different times."""
    return machine(
        "pair",
        {
            "Both": {
                "type": "parallel",
                "states": {
                    side: {"initial": f"{side}1", "states": {f"{side}1": {"on": {side: f"{side}2"}}, f"{side}2": {}}}
                    for side in "LR"
                },
            }
        },
    )


@pytest.fixture
def engine(redis_url, prefix):
    engine = Engine.from_url(redis_url, prefix=prefix, partitions=PARTITIONS)
    yield engine
    engine.client.close()


def read_pages(engine, name, **options):
    found, cursor = [], None
    while True:
        page = engine.find(name, cursor=cursor, **options)
        yield [instance.id for instance in page]
        found += page.instances
        cursor = page.cursor
        if cursor is None:
            return


def cut(ids, limit):
    return [ids[start : start + limit] for start in range(0, len(ids), limit)] or [[]]


@CALLS
@given(
    times=st.lists(st.integers(0, 12), min_size=0, max_size=70),
    skewed=st.floats(0, 1),
    limit=st.integers(1, 40),
    newest=st.booleans(),
)
def test_pages_are_slices_of_the_sorted_list(engine, times, skewed, limit, newest):
    """``skewed``: the part of the instances that lies in one partition."""
    for number in range(PARTITIONS):
        keys = engine.client.keys(f"{engine.keys.partition('box', number).root}:*")
        if keys:
            engine.client.delete(*keys)
    publish(engine, boxes())
    cutoff = round(len(times) * skewed)
    ids = [*OF_ONE[:cutoff], *IDS[: len(times) - cutoff]]
    rows = {id: NOW + at for id, at in zip(ids, times, strict=True)}
    for id, at in rows.items():
        engine.create("box", id, {"name": id}, now=at)
    ordered = sorted(rows, key=lambda id: (rows[id], id.encode()), reverse=newest)
    assert list(read_pages(engine, "box", limit=limit, newest=newest)) == cut(ordered, limit)
    assert list(read_pages(engine, "box", limit=limit, newest=newest, state="A")) == cut(ordered, limit)
    named = sorted((id for id in rows if id.startswith("i1")), reverse=newest)
    found = list(read_pages(engine, "box", limit=limit, newest=newest, where={"name": {"prefix": "i1"}}))
    assert [id for page in found for id in page] == named
    before = [id for id in ordered if rows[id] <= NOW + 5]
    found = read_pages(engine, "box", limit=limit, newest=newest, older_than=1, now=NOW + 1005)
    assert list(found) == cut(before, limit)


def test_an_instance_in_several_regions_is_on_one_page_once(engine):
    publish(engine, regions(), *IDS[:40])
    for number, id in enumerate(IDS[:40]):
        engine.fire("pair", id, "L" if number % 2 else "R", now=NOW + number)
    for limit in (1, 7, 50):
        found = [id for page in read_pages(engine, "pair", limit=limit) for id in page]
        assert sorted(found) == sorted(IDS[:40])


def test_each_partition_is_asked_for_its_share_only(engine):
    publish(engine, boxes(), *IDS[:200])
    engine.client.config_resetstat()
    engine.find("box", limit=50)
    read = engine.client.info("commandstats")["cmdstat_hgetall"]["calls"]
    assert read <= PARTITIONS * compute_share(51, PARTITIONS) + 60, "instances that were read for a page of fifty"


def test_shares_have_a_margin_and_are_no_more_than_a_page():
    assert compute_share(51, 1) == 51
    assert compute_share(51, 8) == 12
    assert compute_share(51, 48) == 4
    assert compute_share(2, 48) == 1
