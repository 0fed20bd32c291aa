"""Messages are applied once each, in order, whoever delivers them and however often."""

import pytest

from machines.engine import Engine, EngineUnavailable
from machines.engine.keys import choose_partition
from tests.engine.builders import machine, publish
from tests.engine.connection.proxies import Relay
from tests.engine.dumps import keys_left
from tests.engine.instances.racing import in_processes, in_threads

from .mailing import corrupt, deliver, in_minutes, lost, noter, oldest, post, remembered, teller, told, waiting, wipe

# Once, whatever happens


def test_a_message_delivered_twice_is_applied_once(pair):
    post(pair, "x", 7)
    first = oldest(pair)
    assert deliver(pair, *first)[2] == "applied"
    assert deliver(pair, *first)[2] == "again"
    pair.tick()
    assert (told(pair), waiting(pair)) == ([7], 0)


def test_one_that_comes_again_after_it_was_settled_is_not_applied_either(pair):
    post(pair, "x", 7)
    stale = oldest(pair)
    pair.tick()
    for n in (8, 9):
        post(pair, "x", n)
        pair.tick()
    assert deliver(pair, *stale)[2] == "again"
    assert told(pair) == [7, 8, 9]


def test_one_held_for_a_suspended_instance_is_held_once(pair):
    post(pair, "x", 7)
    first = oldest(pair)
    pair.suspend("noter", "x", actor="a", reason="r")
    assert [deliver(pair, *first)[2] for _ in range(2)] == ["held", "again"]
    pair.tick()
    assert pair.resume("noter", "x", actor="a", reason="r").data["got"] == [7]


def test_answers_lost_on_the_way_make_no_second_delivery(redis_url, pair):
    relay = Relay(redis_url)
    far = Engine.from_url(relay.url, prefix=pair.keys.prefix, socket_timeout=0.5)
    far.tick()
    for n in range(5):
        post(pair, "x", n)
        relay.break_next()
        with pytest.raises(EngineUnavailable):
            far.drive(["teller"])
        relay.mend()
    far.tick()
    assert (told(pair), waiting(pair)) == (list(range(5)), 0)
    far.client.close()
    relay.close()


@pytest.mark.faults
def test_processes_that_deliver_at_once_apply_each_message_once_and_in_order(pair, redis_url):
    for n in range(30):
        post(pair, "xy"[n % 2], n)
        post(pair, "nobody", n)
    assert in_processes(pair, redis_url, [("tick", ["teller"], {})] * 3) == {"done": 9}
    assert (told(pair, "x"), told(pair, "y")) == (list(range(0, 30, 2)), list(range(1, 30, 2)))
    assert (len(lost(pair)), waiting(pair)) == (30, 0)


def test_senders_and_deliverers_that_race_lose_nothing_and_keep_the_order(pair):
    for id in ("u", "v"):
        pair.create("teller", id)

    def send(sender):
        return lambda: [pair.fire("teller", sender, "tell", {"id": "x", "n": ord(sender) * 100 + n}) for n in range(40)]

    in_threads([*map(send, "tuv"), lambda: [pair.tick() for _ in range(20)]])
    while pair.tick():
        pass
    got = told(pair)
    assert len(got) == 120
    for sender in "tuv":
        assert [n for n in got if n // 100 == ord(sender)] == [ord(sender) * 100 + n for n in range(40)]


# What is remembered


def test_what_a_receiver_remembers_does_not_grow_with_what_it_got(pair):
    for n in range(300):
        pair.fire("teller", "t", "tell", {"id": "x", "n": n})
    assert remembered(pair) <= 2
    pair.fire("teller", "t", "burst", {"id": "y", "n": 500})
    while pair.tick():
        pass
    pair.fire("teller", "t", "tell", {"id": "x", "n": 1})
    assert remembered(pair) <= 2
    assert pair.client.hlen(pair.keys.partition("noter").floors) == 1


def test_a_message_that_waits_elsewhere_does_not_make_it_grow(pair):
    publish(pair, noter("other"), "x")
    publish(pair, machine("both", teller()["states"], context={"lost": [], "ids": [], "n": 0}), "b")
    corrupt(pair, "x", "other")
    far = {"event": "note", "to": {"machine": "other", "id": "'x'"}, "data": {"n": "1"}}
    near = {"event": "note", "to": {"machine": "noter", "id": "'x'"}, "data": {"n": "1"}}
    states = {"A": {"on": {"far": {"actions": {"send": far}}, "near": {"actions": {"send": near}}}}}
    publish(pair, machine("poster", states), "p")
    pair.fire("poster", "p", "far")
    for _ in range(50):
        pair.fire("poster", "p", "near")
    assert len(told(pair)) == 50
    assert remembered(pair, "poster") <= 2
    assert waiting(pair, "poster") == 1


def test_a_message_that_waits_where_others_arrive_is_given_up_before_too_much_is_remembered(pair):
    corrupt(pair, "x")
    post(pair, "x", 1)
    pair.tick()
    seen = pair.keys.partition("noter").seen(pair.keys.partition("teller").root)
    later = in_minutes(5)
    pair.client.zadd(seen, {f"{later}-{n}": later for n in range(10_000)})
    pair.tick()
    assert waiting(pair) == 0
    assert len(lost(pair)) == 1


def test_of_a_pair_that_is_gone_nothing_is_left_but_a_line_of_memory(engine):
    publish(engine, noter())
    publish(engine, teller())
    before = keys_left(engine)
    engine.create("noter", "x")
    engine.create("teller", "t")
    engine.fire("teller", "t", "tell", {"id": "x", "n": 1})
    engine.delete("noter", "x")
    engine.delete("teller", "t")
    left = keys_left(engine) - before
    seen = "{noter:0}:seen:" + engine.keys.partition("teller").root
    assert left == {"{noter:0}:flow", "{noter:0}:floors", seen} | {
        f"{{{name}:0}}:{end}"
        for name, end in [
            ("noter", "log"),
            ("teller", "log"),
            ("teller", "flow"),
            ("teller", "out"),
        ]
    }


# Machines that come and go


@pytest.mark.parametrize("listed", [True, False])
def test_a_machine_that_was_wiped_is_nobody(pair, listed):
    pair.fire("teller", "t", "tell", {"id": "x", "n": 1})
    wipe(pair, "noter", machines=not listed)
    pair.fire("teller", "t", "tell", {"id": "x", "n": 2})
    assert len(lost(pair)) == 1
    assert "no machine 'noter' is published" in lost(pair)[0]
    assert waiting(pair) == 0
    assert [key for key in keys_left(pair) if key.startswith("{noter:0}")] == [], "nothing is written there"


def test_a_machine_that_was_wiped_and_made_anew_gets_what_is_sent_from_then_on(pair):
    for n in range(3):
        pair.fire("teller", "t", "tell", {"id": "x", "n": n})
    wipe(pair, "noter")
    publish(pair, noter(), "x")
    pair.fire("teller", "t", "tell", {"id": "x", "n": 9})
    assert told(pair) == [9]


def test_a_sender_that_was_wiped_and_made_anew_is_heard(pair):
    for n in range(3):
        pair.fire("teller", "t", "tell", {"id": "x", "n": n})
    wipe(pair, "teller")
    publish(pair, teller(), "t")
    pair.fire("teller", "t", "tell", {"id": "x", "n": 9})
    assert told(pair) == [0, 1, 2, 9]


# Partitions


@pytest.fixture
def spread(redis_url, prefix):
    engine = Engine.from_url(redis_url, prefix=prefix, partitions=3)
    yield engine
    engine.client.close()


def test_each_partition_of_sender_and_receiver_has_a_post_of_its_own(spread):
    ids = [f"i{n}" for n in range(12)]
    assert {choose_partition(id, 3) for id in ids} == {0, 1, 2}
    publish(spread, noter(), *ids)
    publish(spread, teller(), *ids)
    for n, sender in enumerate(ids):
        for receiver in ids:
            spread.fire("teller", sender, "tell", {"id": receiver, "n": n})
    for id in ids:
        assert told(spread, id) == list(range(12))
    assert spread.tick() == 0
    assert spread.live("teller").mail == 0


def test_a_partition_that_cannot_be_written_holds_up_no_other(spread):
    ids = {choose_partition(id, 3): id for id in map(str, range(30))}
    publish(spread, noter(), *ids.values())
    publish(spread, teller(), "t")
    broken = spread.keys.partition("noter", 1)
    spread.client.set(broken.floors, "foreign")
    for id in ids.values():
        spread.fire("teller", "t", "tell", {"id": id, "n": 1})
    assert [told(spread, ids[n]) for n in range(3)] == [[1], [], [1]]
    driven = spread.drive(["teller"], retry=True)
    assert ["WRONGTYPE" in str(fault) for fault in driven.faults] == [True]
    spread.client.delete(broken.floors)
    assert spread.tick() == 1
    assert told(spread, ids[1]) == [1]
