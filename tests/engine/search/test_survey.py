"""A survey says what each machine says by itself, and reads again only what changed."""

from __future__ import annotations

import random
import threading
import time

import pytest

from machines.engine import Engine, EngineFault
from tests.engine.builders import counter, door, errand, machine, publish

LEVEL = machine("late", {"Waiting": {"sla": "1s", "on": {"go": "Gone"}}, "Gone": {}})


def settle(engine: Engine) -> None:
    """Read once the pulses of all steps so far are over, so that the reading may be kept."""
    time.sleep(0.15)
    engine.survey()


def agrees(engine: Engine) -> None:
    found = engine.survey()
    assert set(found.lives) == set(engine.machines())
    for name, live in found.lives.items():
        alone, stats = engine.live(name), engine.stats(name)
        assert live.as_dict() | {"now": 0} == alone.as_dict() | {"now": 0}
        shown = {queue: each.as_dict() | {"now": 0} for queue, each in found.queues[name].items()}
        assert shown == {queue: each.as_dict() | {"now": 0} for queue, each in stats.items()}


def reads(engine: Engine) -> int:
    """How many sets of state names were read so far: one for each partition that is read in full."""
    return int(engine.client.info("commandstats")["cmdstat_zcard"]["calls"])


@pytest.mark.parametrize("seed", range(2))
def test_it_says_what_each_machine_says_by_itself(many, seed):
    chance = random.Random(seed)
    for definition in (door(), counter(), errand()):
        publish(many, definition)
    calls = {
        "door": ("open", "close"),
        "counter": ("add", "stop", "nothing"),
        "errand": ("start", "abandon"),
    }
    for step in range(60):
        name = chance.choice(list(calls))
        if chance.random() < 0.4:
            many.create(name, f"i{step}", key=f"k{step}")
        else:
            many.fire_many([(name, f"i{chance.randrange(60)}", chance.choice(calls[name]))])
        if chance.random() < 0.1:
            for job in many.take("errand", "work", "w", count=2):
                many.complete(job, {}) if chance.random() < 0.5 else many.fail(job, "no")
        if chance.random() < 0.05:
            many.pause("errand", "work", actor="a", reason="r")
        if chance.random() < 0.1:
            time.sleep(0.12)
        agrees(many)


def test_what_did_not_change_is_not_read_again(own_server):
    engine = Engine.from_url(own_server.url, partitions=4)
    publish(engine, door(), *(f"d{n}" for n in range(20)))
    publish(engine, counter(), "c")
    settle(engine)
    before = reads(engine)
    assert engine.survey().lives["door"].total == 20
    assert reads(engine) == before
    engine.fire("door", "d1", "open")
    assert engine.survey().lives["door"].counts == {"Shut": 19, "Open": 1}
    assert before < reads(engine) <= before + 12  # one partition of eight
    engine.client.close()


def test_a_change_in_the_shadow_of_a_pulse_is_seen(many):
    publish(many, door(), "d")
    for step in range(30):  # the survey falls between two steps of one pulse
        many.fire("door", "d", "close" if step % 2 else "open")
        agrees(many)
        many.fire("door", "d", "open" if step % 2 else "close")
        agrees(many)
        many.fire("door", "d", "close" if step % 2 else "open")


def test_refusals_and_queue_orders_are_seen(many):
    publish(many, door(), "d")
    publish(many, errand(), "e")
    settle(many)
    many.fire_many([("door", "d", "close")])
    agrees(many)
    assert sum(many.survey().lives["door"].refused.values()) == 1
    settle(many)
    many.fire("errand", "e", "start")
    many.pause("errand", "work", actor="a", reason="r")
    assert many.survey().queues["errand"]["work"].paused is not None


def test_breaches_follow_the_clock_without_a_step(many):
    now = int(time.time() * 1000)
    many.create(many.publish(LEVEL).name, "x", now=now - 400)
    assert many.survey().lives["late"].breaches == {"Waiting": 0}
    deadline = time.monotonic() + 30
    while many.survey().lives["late"].breaches != {"Waiting": 1}:
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_a_machine_that_cannot_be_read_is_a_fault_of_its_own(many):
    publish(many, door(), "d")
    publish(many, counter(), "c")
    root = many.keys.partition("door", 1)
    many.client.set(root.states, "foreign")
    many.client.hdel(root.meta, "touched")
    found = many.survey()
    assert isinstance(found.faults["door"], EngineFault)
    assert list(found.lives) == list(found.queues) == ["counter"]


def test_a_server_that_was_emptied_has_no_machines(own_server):
    engine = Engine.from_url(own_server.url)
    publish(engine, door(), "d")
    settle(engine)
    engine.client.flushall()
    assert engine.survey().lives == {}
    publish(engine, door())
    assert engine.survey().lives["door"].total == 0
    engine.client.close()


def test_without_machines_no_server_has_told_its_time(engine):
    assert engine.survey().now == 0


def test_more_partitions_than_one_call_takes(redis_url, prefix, engine):
    wide = Engine.from_url(redis_url, prefix=prefix, partitions=64)
    for number in range(5):
        publish(wide, door() | {"id": f"door{number}"}, *(f"d{n}" for n in range(10)))
    assert {name: live.total for name, live in wide.survey().lives.items()} == {f"door{n}": 10 for n in range(5)}
    wide.client.close()


def test_threads_that_ask_at_once_share_a_reading(many):
    publish(many, door(), "d")
    found = []
    threads = [threading.Thread(target=lambda: found.append(many.survey().lives["door"].total)) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [1] * 16
