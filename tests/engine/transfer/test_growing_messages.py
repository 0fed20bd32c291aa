"""Messages reach instances that move, once and in order; parents and children find each other."""

from __future__ import annotations

import pytest

from machines.engine import Engine
from machines.engine.keys import choose_partition
from machines.engine.transfer.repartitioning import Repartition
from tests.engine.builders import machine, publish
from tests.engine.messages.mailing import noter, post, teller, told, waiting

MOVED = next(f"x{n}" for n in range(100) if choose_partition(f"x{n}", 4) == 3)


def grow(engine: Engine, name: str, **options) -> bool:
    return Repartition(engine.client, engine.keys, name, 4, settle=0, **options).run().finished


@pytest.fixture
def late(redis_url, prefix):
    """An engine that knows nothing of the growth at first."""
    engine = Engine.from_url(redis_url, prefix=prefix)
    yield engine
    engine.client.close()


@pytest.fixture
def pair(engine):
    publish(engine, noter(), MOVED)
    publish(engine, teller(), "t")
    return engine


@pytest.mark.parametrize("finished", [True, False])
def test_a_message_that_was_delivered_and_not_settled_is_not_applied_again_after_the_move(pair, late, finished):
    post(pair, MOVED, 7)
    here, source = pair.keys.partition("noter").root, pair.keys.partition("teller").root
    _, _, _, id, kind, _, instance, body = pair.client.fcall_ro("sb_outbox", 1, source, 10, "")
    reply = pair.client.fcall("sb_deliver", 1, here, source, id, "", "", id, kind, instance, body)
    assert reply[2] == "applied"
    assert grow(pair, "noter")
    if not finished:
        pair.client.hset(pair.keys.growth, "noter", "1:4:1:0")
    late.tick()
    assert (told(late, MOVED), waiting(late)) == ([7], 0)


def test_a_message_posted_before_the_move_comes_after_it_once(pair, late):
    for number in range(5):
        post(pair, MOVED, number)
    assert grow(pair, "noter")
    for number in range(5, 9):
        post(pair, MOVED, number)
    late.tick()
    pair.tick()
    assert (told(late, MOVED), waiting(late)) == (list(range(9)), 0)


def test_messages_to_instances_that_move_meanwhile_keep_their_order(pair, late):
    ids = [f"y{n}" for n in range(30)]
    publish(pair, noter(), *ids)
    rounds = iter(range(1000))

    def stopped():
        number = next(rounds)
        for id in ids:
            late.fire("teller", "t", "tell", {"id": id, "n": number})
        return False

    assert grow(pair, "noter", stopped=stopped)
    last = next(rounds)
    late.tick()
    assert {id: told(late, id) for id in ids} == {id: list(range(last)) for id in ids}


def test_an_instance_waits_until_its_own_messages_are_delivered(pair, late):
    publish(pair, teller(), MOVED)
    post(pair, MOVED, 1, sender=MOVED)
    rounds = iter(range(1000))

    def stopped():
        if next(rounds) == 12:
            late.tick()
        return False

    assert grow(pair, "teller", stopped=stopped)
    late.fire("teller", MOVED, "tell", {"id": MOVED, "n": 2})
    assert told(late, MOVED) == [1, 2]


def test_a_parent_and_a_child_that_moved_find_each_other(engine, late):
    child = machine("kid", {"On": {"on": {"go": "Off"}}, "Off": {"type": "final"}}, accepts={"from": ["*"]})
    wait = {"invoke": {"id": "kid", "src": "machine:kid", "onDone": "Done"}, "on": {"leave": "Left"}}
    engine.publish(child)
    ids = [f"p{n}" for n in range(12)]
    publish(engine, machine("folk", {"Wait": wait, "Done": {}, "Left": {}}), *ids)
    engine.tick()
    kids = {id: engine.get("folk", id).children["kid"]["id"] for id in ids}
    assert grow(engine, "kid")
    assert grow(engine, "folk")
    for id in ids[:6]:
        late.fire("kid", kids[id], "go")
    for id in ids[6:]:
        late.fire("folk", id, "leave")
    late.tick()
    late.tick()
    assert [late.get("folk", id).configuration for id in ids] == [["Done"]] * 6 + [["Left"]] * 6
    assert late.counts("kid") == {"On": 0, "Off": 6}
