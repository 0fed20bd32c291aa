"""Calls on a cluster go to the node of their own key, follow slots that move, and outlive nodes that die."""

import asyncio
import contextlib
import json
import os
import signal
import threading
import time

import pytest
import redis
import redis.asyncio

from machines.engine import Engine, EngineUnavailable, Fire, Instance
from machines.engine.connection.client import connect
from machines.engine.connection.cluster_routing import find_slot
from machines.engine.keys import choose_partition
from machines.engine.sm_commands import shim
from machines.patterns import Throttle
from tests.cases import for_each
from tests.clusters import Cluster
from tests.engine.builders import door, errand, publish
from tests.engine.instances.racing import in_a_child

from . import clusters
from .load import Load, counting

PARTITIONS = 12
IDS = [f"i{number:02}" for number in range(24)]


@pytest.fixture
def engine(nodes, prefix):
    with clusters.engine_on(nodes, prefix, PARTITIONS) as engine:
        yield engine


@pytest.fixture
def url_of_nodes(nodes):
    return clusters.url_of(nodes)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory, program_of_this_run):
    with Cluster(tmp_path_factory.mktemp("own-cluster"), program=program_of_this_run, node_timeout=1.0) as cluster:
        yield cluster


@pytest.fixture
def hardy(cluster):
    """An engine on a cluster that may lose nodes."""
    engine = Engine.from_url(cluster.url, partitions=PARTITIONS, socket_timeout=2.0)
    yield engine
    engine.client.close()


@for_each("key", ["a", "sb:{door:3}:i:x", "{}a", "a{b", "{a}{b}", "ü{é}", ""])
def test_slots_are_those_of_redis(key):
    assert find_slot(key) == redis.crc.key_slot(key.encode())


def test_no_call_asks_a_node_which_keys_it_has(engine, nodes, prefix):
    publish(engine, errand(), *IDS)
    for node in nodes:
        with node.client() as client:
            client.config_resetstat()
    for id in IDS:
        engine.fire("errand", id, "start")
    engine.fire_many([("errand", id, "abandon") for id in IDS])
    engine.find("errand")
    engine.live("errand")
    engine.stats("errand")
    engine.tick()
    Throttle(engine.client, prefix).take("api", "someone", limit=1, per=60)
    for node in nodes:
        with node.client() as client:
            assert not [name for name in client.info("commandstats") if name.startswith("cmdstat_command")]


def test_sm_commands_go_to_the_node_of_their_key(nodes, url_of_nodes, prefix):
    definition = json.dumps({"current": "off", "initial": "off", "map": {"off": ["on"], "on": ["off"]}, "reason": ""})
    keys = [f"{prefix}light:{number}" for number in range(12)]
    client = shim(connect(url_of_nodes))
    for key in keys[:1]:
        client.execute_command("SM.SET", key, definition)

    async def push():
        far = shim(redis.asyncio.RedisCluster.from_url(url_of_nodes.replace("+cluster", ""), decode_responses=True))
        found = [await far.execute_command("SM.STATE", key) for key in keys]
        await far.aclose()
        return found

    asyncio.run(push())
    for node in nodes:
        with node.client() as watcher:
            watcher.config_resetstat()
    found = [client.execute_command("SM.STATE", key) for key in keys]
    assert [one for one in found if one] == found[:1]
    assert asyncio.run(push()) == found
    for node in nodes:
        with node.client() as watcher:
            assert "cmdstat_command|getkeys" not in watcher.info("commandstats")
    client.delete(keys[0])
    client.close()


def test_a_key_that_has_left_is_asked_for_at_its_new_node(engine, nodes, prefix):
    key = f"{prefix}{{moving}}:a"
    with migrating(nodes, find_slot(key)) as (_, target):
        assert engine._caller.command("SET", key, "there")  # the slot's owner answers ASK
        assert engine._caller.command("GET", key) == "there"
        assert engine._caller.commands([(key, ("GET", key)), (f"{prefix}b", ("GET", f"{prefix}b"))]) == ["there", None]
        with target.client() as client:
            assert client.execute_command("CLUSTER", "COUNTKEYSINSLOT", find_slot(key)) == 1
        engine._caller.command("DEL", key)


def test_keys_on_two_nodes_are_waited_for(engine, nodes, prefix):
    """TRYAGAIN: one key of a call has moved already and another has not."""
    first, second = (f"{prefix}{{torn}}:{name}" for name in "ab")
    engine._caller.command("SET", first, "1")
    found = []
    with migrating(nodes, find_slot(first)) as (source, target):
        engine._caller.command("SET", second, "2")  # on the target
        caller = threading.Thread(target=lambda: found.append(engine._caller.command("MGET", first, second)))
        caller.start()
        clusters.eventually(lambda: refusals(source) > 0)
        with source.client() as client:
            client.execute_command("MIGRATE", "127.0.0.1", target.port, first, 0, 5000)
        caller.join()
        assert found == [["1", "2"]]
        engine._caller.command("DEL", first, second)


def refusals(node):
    with node.client() as client:
        return client.info("errorstats").get("errorstat_TRYAGAIN", {}).get("count", 0)


def test_keys_that_stay_on_two_nodes_are_refused_with_the_word_that_a_retry_is_safe(engine, nodes, prefix, monkeypatch):
    monkeypatch.setattr("machines.engine.connection.cluster_routing.RETRY_TIME", 0.2)
    first, second = (f"{prefix}{{torn}}:{name}" for name in "ab")
    engine._caller.command("SET", first, "1")
    with migrating(nodes, find_slot(first)):
        engine._caller.command("SET", second, "2")
        with pytest.raises(EngineUnavailable, match="nothing was changed") as caught:
            engine._caller.command("MGET", first, second)
        assert caught.value.retry_safe
        engine._caller.command("DEL", second)
    engine._caller.command("DEL", first)


@contextlib.contextmanager
def migrating(nodes, slot):
    """A slot on its way from its owner to another node; afterwards it is stable again where it was."""
    owners = {node.port: node for node in nodes}
    with nodes[0].client() as client:
        ranges = client.execute_command("CLUSTER", "SLOTS")
    source = next(owners[owner[1]] for first, last, owner, *_ in ranges if first <= slot <= last)
    target = next(node for node in nodes if node is not source)
    with source.client() as old, target.client() as new:
        from_id, to_id = old.execute_command("CLUSTER", "MYID"), new.execute_command("CLUSTER", "MYID")
        new.execute_command("CLUSTER", "SETSLOT", slot, "IMPORTING", from_id)
        old.execute_command("CLUSTER", "SETSLOT", slot, "MIGRATING", to_id)
        try:
            yield source, target
        finally:
            new.execute_command("CLUSTER", "SETSLOT", slot, "STABLE")
            old.execute_command("CLUSTER", "SETSLOT", slot, "STABLE")


def test_any_seed_that_answers_suffices(nodes, prefix):
    (free,) = clusters.free_ports(1)
    engine = Engine.from_url(f"redis+cluster://127.0.0.1:{free},127.0.0.1:{nodes[1].port}", prefix=prefix)
    engine.ping()
    publish(engine, door(), "x")
    assert engine.fire("door", "x", "open").state == "Open"
    engine.client.close()


def test_a_forked_process_goes_on_with_connections_of_its_own(engine):
    publish(engine, door(), *IDS)
    theirs, mine = in_a_child(
        lambda: engine.fire_many([("door", id, "open") for id in IDS])[-1].state,
        lambda: sum(engine.counts("door").values()),
    )
    assert (theirs, mine) == ("Open", len(IDS))


def owner_of(engine, id):
    """The port of the node that holds a counter."""
    return engine.client.get_node_from_key(engine.keys.partition("counter", choose_partition(id, PARTITIONS)).root).port


def test_a_client_that_only_fires_goes_on_after_its_default_node_died(hardy, cluster):
    publish(hardy, counting(), *IDS)
    default = next(node for node in cluster.nodes if node.port == hardy.client.get_default_node().port)
    there = [id for id in IDS if owner_of(hardy, id) == default.port]
    ids = [*there[:3], *(id for id in IDS if id not in there)][:6]
    assert there
    with Load(hardy, ids) as load:
        load.wait_for_more()
        default.kill()
        load.wait_for_more()
    default.revive()
    cluster.wait_settled()
    assert {type(error) for error in load.errors} == {EngineUnavailable}
    for id in ids:
        assert hardy.get("counter", id).data["n"] <= load.acknowledged[id] + load.unknown[id], "none was sent twice"
    assert hardy.client.get_default_node().port != default.port


def test_a_node_that_hangs_holds_up_the_others_no_longer_than_one_timeout(hardy, cluster):
    publish(hardy, door(), *IDS)
    held = next(iter(cluster.primary_nodes()))
    with held.client() as client:
        process = client.info("server")["process_id"]
    far = Engine.from_url(cluster.url, socket_timeout=0.3)
    far.counts("door")
    os.kill(process, signal.SIGSTOP)
    try:
        results = far.fire_many([Fire("door", id, "open") for id in IDS])
        kinds = {type(result) for result in results}
        assert kinds == {Instance, EngineUnavailable}
        lost = next(id for id, result in zip(IDS, results, strict=True) if isinstance(result, EngineUnavailable))
        with pytest.raises(EngineUnavailable) as caught:
            far.fire("door", lost, "open")
        assert "a moment ago" not in str(caught.value) or caught.value.retry_safe
    finally:
        os.kill(process, signal.SIGCONT)
    cluster.wait_settled()
    clusters.eventually(lambda: answers(far, lost))
    far.client.close()


def answers(engine, id):
    with contextlib.suppress(EngineUnavailable):
        return engine.get("door", id).id == id
    time.sleep(0.05)
    return False


def test_a_call_waits_for_its_replicas_on_its_own_connection(hardy, cluster):
    publish(hardy, door(), "x")
    root = hardy._catalog.partition("door", "x").root
    reply, written = hardy._caller.call_and_wait("sb_fire", root, "x", "open", "", "", replicas=1, timeout=30_000)
    assert (reply[0], written >= 1) == ("OK", True)
    assert hardy.get("door", "x").state == "Open"
