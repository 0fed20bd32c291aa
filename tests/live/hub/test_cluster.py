"""On a Redis Cluster every primary makes the notifications of its own keys only."""

from __future__ import annotations

import asyncio

from dashboard.api.live import read
from dashboard.live.hub.hub import Hub
from dashboard.live.limits import Limits
from dashboard.live.topics import parse
from machines.engine import Engine, EngineUnavailable
from machines.engine.keys import Keys, choose_partition
from tests.clusters import Cluster
from tests.engine.connection import clusters
from tests.installation.processes import eventually
from tests.live.builders import GATE
from tests.live.conftest import NEVER, Watcher

PARTITIONS = 8


async def test_steps_on_all_primaries_show_by_their_hints(nodes: list[clusters.Node], prefix: str) -> None:
    with clusters.engine_on(nodes, prefix, PARTITIONS) as engine:
        engine.publish(GATE)
        for number in range(24):
            engine.create("gate", f"i{number}")
        limits = Limits(reconcile=NEVER, reconcile_without_hints=NEVER)
        watcher = Watcher(Hub(clusters.url_of(nodes), Keys(prefix), limits))
        watcher.watch("machine:gate", "instance:gate/i7", "overview")
        await watcher.sees("machine:gate", counts={"Shut": 24, "Open": 0})
        for number in range(24):
            engine.fire("gate", f"i{number}", "open")
            await watcher.sees("machine:gate", counts={"Shut": 23 - number, "Open": number + 1})
        await watcher.sees("instance:gate/i7", state="Open")
        assert len({node.port for node in engine.client.get_primaries()}) == clusters.NODES
        value, _ = read(engine, parse("machine:gate"))
        assert {**value, "now": 0} == {**watcher.screen.values["machine:gate"], "now": 0}
        await watcher.leave()


async def test_a_shard_that_is_down_is_marked_and_comes_back(cluster: Cluster, prefix: str) -> None:
    engine = Engine.from_url(cluster.url, prefix=prefix, partitions=PARTITIONS)
    engine.publish(GATE)
    for number in range(24):
        engine.create("gate", f"i{number}")
    owner = cluster.owner_of(engine.client.keyslot(engine.keys.partition("gate", 0).root))
    lost = [n for n in range(PARTITIONS) if _port(engine, n) == owner.port]
    held = {id: choose_partition(id, PARTITIONS) in lost for id in (f"i{number}" for number in range(24))}
    here, there = (next(id for id, is_lost in held.items() if is_lost is wanted) for wanted in (True, False))
    limits = Limits(reconcile=1.0, deadline=2.0)
    watcher = Watcher(Hub(cluster.url, Keys(prefix), limits))
    watcher.watch("machine:gate", f"instance:gate/{here}", f"instance:gate/{there}", "overview")
    await watcher.sees("machine:gate", counts={"Shut": 24, "Open": 0})
    await watcher.sees(f"instance:gate/{here}", state="Shut")
    (replica,) = cluster.replicas_of(owner)
    replica.stop()
    owner.kill()
    try:
        shown = await watcher.sees("machine:gate", missing=lost, partitions=PARTITIONS)
        assert shown["total"] == sum(not is_lost for is_lost in held.values())
        shown = await watcher.sees(f"instance:gate/{here}", unavailable=True)
        assert shown["state"] == "Shut", "as it was known last"
        await asyncio.to_thread(eventually, lambda: _fires(engine, there), "a step on a shard that answers")
        await watcher.sees(f"instance:gate/{there}", state="Open")
        assert watcher.hub.well
    finally:
        replica.revive()
        owner.revive()
        cluster.wait_settled()
    await watcher.sees("machine:gate", counts={"Shut": 23, "Open": 1}, missing=None)
    await watcher.sees(f"instance:gate/{here}", unavailable=None)
    await watcher.leave()
    engine.client.close()


async def test_a_failover_of_each_node_in_turn_loses_nothing(cluster: Cluster, prefix: str) -> None:
    engine = Engine.from_url(cluster.url, prefix=prefix, partitions=PARTITIONS)
    engine.publish(GATE)
    for number in range(24):
        engine.create("gate", f"i{number}")
    watcher = Watcher(Hub(cluster.url, Keys(prefix), Limits(reconcile=1.0, deadline=2.0)))
    watcher.watch("machine:gate")
    await watcher.sees("machine:gate", counts={"Shut": 24, "Open": 0})
    for turn, primary in enumerate(cluster.primary_nodes(), start=1):
        await asyncio.to_thread(cluster.fail_over, primary)
        await asyncio.to_thread(eventually, lambda t=turn: _fires(engine, f"i{t}"), "a step after a failover")
        await watcher.sees("machine:gate", counts={"Shut": 24 - turn, "Open": turn}, missing=None)
    await watcher.leave()
    engine.client.close()


def _port(engine: Engine, partition: int) -> int:
    return engine.client.get_node_from_key(engine.keys.partition("gate", partition).root).port


def _fires(engine: Engine, id: str) -> bool:
    """Open a gate, once; False while its shard does not answer."""
    try:
        return engine.fire("gate", id, "open", key="once").state == "Open"
    except EngineUnavailable:
        return False
