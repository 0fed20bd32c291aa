"""Timers and messages of machines that are spread over a cluster, and a node that is away for a while."""

from __future__ import annotations

import os
import time

import pytest

from machines.engine.keys import choose_partition
from tests.conftest import program
from tests.engine.builders import NOW, machine, publish
from tests.engine.connection import clusters

from .mailing import noter, teller, told

PARTITIONS = 6
IDS = [f"i{number:02}" for number in range(24)]


@pytest.fixture(scope="module")
def nodes(tmp_path_factory, redis_url):
    kind = program(os.environ.get("SIGNALBOX_TEST_SERVER", ""))
    with clusters.running(tmp_path_factory.mktemp("cluster"), kind) as nodes:
        for node in nodes:
            with node.client() as client:
                client.config_set("cluster-require-full-coverage", "no")
        yield nodes


@pytest.fixture
def engine(nodes, prefix):
    with clusters.engine_on(nodes, prefix, PARTITIONS, socket_timeout=0.5) as engine:
        yield engine


def node_of(engine, nodes, name, id):
    """Where an instance lives."""
    root = engine.keys.partition(name, choose_partition(id, PARTITIONS)).root
    port = engine.client.get_node_from_key(root).port
    return next(node for node in nodes if node.port == port)


def settle(engine):
    while engine.tick():
        pass


def test_timers_of_all_partitions_fire_in_one_go(engine):
    publish(engine, machine("lamp", {"On": {"after": {"10s": "Off"}}, "Off": {}}), *IDS)
    assert engine.advance("lamp", now=NOW + 9_999) == (0, NOW + 10_000)
    assert engine.live("lamp").timers == 24
    assert engine.advance("lamp", now=NOW + 10_000) == (24, None)
    assert engine.counts("lamp") == {"On": 0, "Off": 24}


def test_messages_cross_from_every_partition_to_every_other_once_and_in_order(engine):
    publish(engine, noter(), *IDS)
    publish(engine, teller(), *IDS)
    for n in range(3):
        calls = [("teller", a, "tell", {"id": b, "n": n}) for a in IDS[:8] for b in IDS]
        assert {result.revision > 1 for result in engine.fire_many(calls)} == {True}
    settle(engine)
    for id in IDS:
        got = told(engine, id)
        assert sorted(got) == [n for n in range(3) for _ in range(8)]
        steps = [(step.actor, step.payload["n"]) for step in reversed(engine.history("noter", id)[:-1])]
        for sender in IDS[:8]:
            assert [n for actor, n in steps if actor == f"teller/{sender}"] == [0, 1, 2]
    assert engine.live("teller").mail == 0


def test_machines_invoke_each_other_across_partitions(engine):
    child = machine(
        "child", {"A": {"on": {"end": "Z"}}, "Z": {"type": "final", "output": {"sum": "a + 1"}}}, context={"a": 0}
    )
    invoke = {
        "src": "machine:child",
        "id": "k",
        "input": {"a": "n"},
        "onDone": {"target": "B", "actions": {"set": {"n": "event.sum"}}},
    }
    work = {
        "A": {"invoke": invoke, "on": {"go": {"actions": {"send": {"event": "end", "to": "'#_k'"}}}, "quit": "C"}},
        "B": {},
        "C": {},
    }
    publish(engine, child)
    engine.publish(machine("boss", work, context={"n": 0}))
    for number, id in enumerate(IDS):
        engine.create("boss", id, {"n": number})
    assert engine.counts("child") == {"A": 24, "Z": 0}
    for id in IDS[:12]:
        engine.fire("boss", id, "go")
    for id in IDS[12:]:
        engine.fire("boss", id, "quit")
    settle(engine)
    assert engine.counts("boss") == {"A": 0, "B": 12, "C": 12}
    assert [engine.get("boss", id).data["n"] for id in IDS[:12]] == list(range(1, 13))
    assert engine.counts("child") == {"A": 0, "Z": 12}


def test_a_node_that_does_not_answer_in_time_gets_its_messages_once_and_the_others_at_once(engine, nodes):
    """What was sent to it is carried out after all, when it wakes: so it comes twice."""
    publish(engine, noter(), *IDS)
    publish(engine, teller(), "t")
    home = node_of(engine, nodes, "teller", "t")
    silent = next(node for node in nodes if node is not home)
    theirs = [id for id in IDS if node_of(engine, nodes, "noter", id) is silent]
    others = [id for id in IDS if id not in theirs]
    assert theirs
    assert others
    with silent.client() as client:
        client.execute_command("CLIENT", "PAUSE", 3000, "ALL")
        for id in IDS:
            engine.fire("teller", "t", "tell", {"id": id, "n": 7})
        assert [told(engine, id) for id in others] == [[7]] * len(others)
        driven = engine.drive(["teller"])
        assert driven.moved == 0
        client.ping()  # answered when the pause is over
    deadline = time.monotonic() + 60
    while engine.client.xlen(engine.keys.partition("teller", choose_partition("t", PARTITIONS)).outbox):
        engine.drive(["teller"])
        assert time.monotonic() < deadline, "the messages are delivered once the node is back"
        time.sleep(0.05)
    assert [told(engine, id) for id in IDS] == [[7]] * len(IDS)
    assert engine.get("teller", "t").data["lost"] == []


def test_slots_that_nobody_serves_for_a_while_keep_their_messages_waiting(engine, nodes):
    publish(engine, noter(), *IDS)
    publish(engine, teller(), "t")
    root = engine.keys.partition("noter", 2).root
    slot, owner = (
        engine.client.keyslot(root),
        node_of(engine, nodes, "noter", next(i for i in IDS if _partition(i) == 2)),
    )
    with owner.client() as client:
        client.execute_command("CLUSTER", "DELSLOTS", slot)
        try:
            for id in IDS:
                engine.fire("teller", "t", "tell", {"id": id, "n": 7})
            reached = [id for id in IDS if _partition(id) != 2]
            assert [told(engine, id) for id in reached] == [[7]] * len(reached)
            assert engine.drive(["teller"], retry=True).faults
        finally:
            client.execute_command("CLUSTER", "ADDSLOTS", slot)
            clusters.eventually(lambda: clusters.settled(client))
    settle(engine)
    assert [told(engine, id) for id in IDS] == [[7]] * len(IDS)


def _partition(id):
    return choose_partition(id, PARTITIONS)
