"""The number of the data layout: who checks it, who moves it, and where an unfinished migration goes on."""

import pytest

from machines.engine import Engine, data_layout, errors
from machines.engine.data_layout import Migration
from tests.engine.builders import door, publish


def batches(*names, seen):
    """A migration that appends the names to ``seen``, one batch each, from the one after ``place`` on."""

    def run(send, keys, place):
        for name in names[names.index(place) + 1 if place else 0 :]:
            seen.append(name)
            yield name

    return run


@pytest.fixture
def send(engine):
    return engine._caller.command


def test_data_of_before_there_were_numbers_gets_one(engine):
    assert publish(engine, door(), "x") == "door"
    assert engine.client.hgetall(engine.keys.layout) == {"reader": str(data_layout.READER)}
    assert engine.migrate_layout() == data_layout.LAYOUT == engine.migrate_layout()
    assert engine.client.hgetall(engine.keys.layout) == {
        "number": str(data_layout.LAYOUT),
        "reader": str(data_layout.READER),
    }
    assert engine.fire("door", "x", "open").state == "Open"


def test_each_migration_runs_once_and_in_order(engine, send):
    seen = []
    moves = [Migration(1, 0, batches("a", "b", seen=seen)), Migration(2, 1, batches("c", seen=seen))]
    assert data_layout.migrate(send, engine.keys, moves) == 2 == data_layout.migrate(send, engine.keys, moves)
    assert seen == ["a", "b", "c"]
    assert engine.client.hgetall(engine.keys.layout) == {"number": "2", "reader": "1"}
    assert engine.client.exists(engine.keys.layout_lock) == 0


def test_one_that_was_killed_goes_on_where_it_was(engine, send):
    seen = []

    def dies(send, keys, place):
        yield from batches("a", "b", seen=seen)(send, keys, place)
        raise RuntimeError("killed")

    with pytest.raises(RuntimeError):
        data_layout.migrate(send, engine.keys, [Migration(1, 0, dies)])
    assert engine.client.hgetall(engine.keys.layout) == {"reader": "0", "place": "b"}
    assert data_layout.migrate(send, engine.keys, [Migration(1, 0, batches("a", "b", "c", seen=seen))]) == 1
    assert seen == ["a", "b", "c"]


def test_another_process_at_it_is_left_alone_and_one_that_lost_its_lock_stops(engine, send):
    seen = []
    engine.client.set(engine.keys.layout_lock, "another", px=60_000)
    assert data_layout.migrate(send, engine.keys, [Migration(1, 0, batches("a", seen=seen))]) == 0
    assert seen == []
    engine.client.delete(engine.keys.layout_lock)

    def overtaken(send, keys, place):
        engine.client.set(engine.keys.layout_lock, "another", px=60_000)
        yield from batches("a", "b", seen=seen)(send, keys, place)

    assert data_layout.migrate(send, engine.keys, [Migration(1, 0, overtaken)]) == 0
    assert seen == ["a"]
    assert engine.client.get(engine.keys.layout_lock) == "another"


def test_a_newer_layout_that_this_release_can_read_is_worked_with(engine, redis_url):
    engine.client.hset(engine.keys.layout, mapping={"number": data_layout.LAYOUT + 3, "reader": data_layout.LAYOUT})
    assert publish(engine, door(), "x") == "door"
    assert engine.migrate_layout() == data_layout.LAYOUT + 3


def test_one_that_it_cannot_read_is_refused_at_the_first_call(redis_url, prefix, engine):
    publish(engine, door(), "x")
    engine.client.hset(engine.keys.layout, mapping={"number": data_layout.LAYOUT + 3, "reader": data_layout.LAYOUT + 2})
    late = Engine.from_url(redis_url, prefix=prefix)
    for _ in range(2):
        with pytest.raises(errors.EngineFault, match=r"needs a release that knows layout \d+; .*nothing was changed"):
            late.fire("door", "x", "open")
    with pytest.raises(errors.EngineFault) as caught:
        late.migrate_layout()
    assert caught.value.code == "SB512"
    late.client.close()
    assert engine.get("door", "x").state == "Shut"
