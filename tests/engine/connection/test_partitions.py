"""A machine in several partitions is one machine to everybody who asks."""

import threading

import pytest

from machines.engine import Engine, SignalboxError, UnknownInstance
from machines.engine.keys import choose_partition
from tests.engine.builders import NOW, counter, door, errand, publish
from tests.engine.dumps import keys_left
from tests.engine.instances.racing import in_threads

PARTITIONS = 4


@pytest.fixture
def engine(redis_url, prefix):
    engine = Engine.from_url(redis_url, prefix=prefix, partitions=PARTITIONS)
    yield engine
    engine.client.close()


def names(count):
    return [f"i{number:03}" for number in range(count)]


def all_ids(engine, name, **options):
    found, cursor = [], None
    while True:
        page = engine.find(name, cursor=cursor, **options)
        found += [instance.id for instance in page]
        cursor = page.cursor
        if cursor is None:
            return found


def test_each_instance_is_in_the_partition_its_id_says(engine):
    publish(engine, door(), *names(40))
    roots = {f"{{door:{choose_partition(id, PARTITIONS)}}}:i:{id}" for id in names(40)}
    assert roots <= keys_left(engine)
    assert len({root.partition(":i:")[0] for root in roots}) == PARTITIONS


def test_counts_flow_and_queues_are_those_of_all_partitions(engine):
    publish(engine, errand(), *names(40))
    for id in names(30):
        engine.fire("errand", id, "start")
    live = engine.live("errand")
    assert live.counts == {"Idle": 10, "Busy": 30, "Done": 0, "Failed": 0}
    assert (live.flow, live.queues["work"]["ready"]) == ({"1:t1": 30}, 30)
    assert live.oldest["Idle"] == NOW
    assert engine.counts("errand") == live.counts


def test_find_keeps_one_order_across_partitions(engine):
    publish(engine, door())
    for number, id in enumerate(reversed(names(60))):
        engine.create("door", id, now=NOW + number // 7)
    expected = sorted(names(60), key=lambda id: (NOW + (59 - int(id[1:])) // 7, id))
    for limit in (1, 7, 50):
        assert all_ids(engine, "door", limit=limit) == expected
        assert all_ids(engine, "door", limit=limit, newest=True, state="Shut") == expected[::-1]


def test_paging_visits_every_instance_that_stays_exactly_once_while_others_move(engine, redis_url, prefix):
    publish(engine, door(), *names(200))
    movers, stop = names(200)[::3], threading.Event()

    def move():
        other, opened = Engine.from_url(redis_url, prefix=prefix), False
        while not stop.is_set():
            opened = not opened
            other.fire_many([("door", id, "open" if opened else "close") for id in movers])
        other.client.close()

    thread = threading.Thread(target=move)
    thread.start()
    try:
        for newest in (False, True):
            seen = all_ids(engine, "door", limit=9, state="Shut", newest=newest)
            stayed = [id for id in seen if id not in movers]
            assert stayed == sorted(set(names(200)) - set(movers), reverse=newest)
    finally:
        stop.set()
        thread.join()


def test_every_call_finds_the_instance(engine):
    publish(engine, counter(), *names(12))
    for id in names(12):
        assert engine.explain("counter", id, "add").taken
        assert engine.fire("counter", id, "add", key="k").data == {"n": 1}
        assert engine.fire("counter", id, "add", key="k").outcome.replayed
        assert len(engine.history("counter", id)) == 2
        assert engine.force("counter", id, "On", actor="a", reason="r").revision == 3
        assert engine.delete("counter", id).id == id
        with pytest.raises(UnknownInstance):
            engine.get("counter", id)


def test_work_of_every_partition_is_taken_and_finished(engine):
    publish(engine, errand(), *names(20))
    for id in names(20):
        engine.fire("errand", id, "start")
    assert len(engine.take("errand", "work", "w", count=5)) == 5
    rest = engine.take("errand", "work", "w", count=100)
    assert len(rest) == 15
    assert len({job.root for job in rest}) > 1
    assert engine.extend(rest, 60_000) == [True] * 15
    for job in rest:
        assert engine.job("errand", job.id).instance == job.instance
        assert engine.complete(job).state == "Done"
    assert len(engine.jobs("errand", "work", place="leased")) == 5
    assert engine.sweep("errand", now=NOW * 2) == 5
    assert engine.queues("errand")["work"] == {"ready": 5, "leased": 0, "delayed": 0, "dead": 0, "handled": 0}


def test_another_engine_learns_how_many_there_are(engine, redis_url, prefix):
    publish(engine, door(), *names(10))
    other = Engine.from_url(redis_url, prefix=prefix)
    assert {other.get("door", id).id for id in names(10)} == set(names(10))
    other.publish(door(history=7))
    assert other.create("door", "new").version == 2
    assert engine.get("door", "new").version == 2
    assert {engine.create("door", f"more{number}").version for number in range(10)} == {2}
    other.client.close()


def test_publishing_stopped_half_way_is_finished_by_publishing_again(engine):
    publish(engine, door())
    lost = engine.keys.partition("door", 2)
    for key in (lost.meta, lost.definition(1), lost.states):
        engine.client.delete(key)
    again = engine.publish(door())
    assert (again.version, again.created) == (1, True)
    publish(engine, door(), *names(20))


def test_fire_many_goes_to_all_of_them_in_one_round(engine):
    publish(engine, door(), *names(30))
    results = engine.fire_many([("door", id, "open") for id in [*names(30), "nobody"]])
    assert [getattr(result, "state", None) for result in results[:-1]] == ["Open"] * 30
    assert isinstance(results[-1], SignalboxError)


def test_of_racing_publishers_all_partitions_end_on_one_version(engine):
    engine.load_library()
    for _ in range(5):
        in_threads([lambda n=n: engine.publish(door(history=n)) for n in range(1, 7)])
        held = [engine.client.hget(engine.keys.partition("door", n).meta, "current") for n in range(PARTITIONS)]
        assert len(set(held)) == 1, held
