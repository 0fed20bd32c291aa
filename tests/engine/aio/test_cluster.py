"""AsyncEngine on a cluster: the routing is that of Engine."""

from __future__ import annotations

import asyncio
import os
import signal

import pytest

from machines.engine import AsyncEngine, EngineUnavailable
from tests.engine.builders import counter, door
from tests.engine.connection import clusters


@pytest.fixture
async def spread(nodes, prefix):
    async with AsyncEngine.from_url(clusters.url_of(nodes), prefix=prefix, partitions=6, socket_timeout=2) as engine:
        yield engine
    clusters.remove(nodes, prefix)


async def test_calls_go_to_all_nodes_at_once_and_come_back_in_order(spread):
    await spread.publish(counter())
    made = await asyncio.gather(*(spread.create("counter") for _ in range(100)))
    fired = await asyncio.gather(*(spread.fire("counter", one.id, "add", expect=1) for one in made))
    assert [one.id for one in fired] == [one.id for one in made]
    many = await spread.fire_many([("counter", one.id, "add") for one in made])
    assert [one.data["n"] for one in many] == [2] * 100
    assert (await spread.counts("counter"))["On"] == 100
    assert len({one.id for one in (await spread.find("counter", limit=200)).instances}) == 100
    assert (await spread.survey()).lives["counter"].counts["On"] == 100
    assert await spread.check_partitions() == []
    await spread.ping()


async def test_a_node_that_is_silent_keeps_neither_the_loop_nor_the_others_waiting(spread, nodes):
    await spread.publish(door())
    ids = [one.id for one in await asyncio.gather(*(spread.create("door") for _ in range(60)))]
    with nodes[1].client() as client:
        process = int(client.info("server")["process_id"])
        slots = [(first, last) for first, last, (_, port, *_), *_ in client.execute_command("CLUSTER SLOTS")
                 if port == nodes[1].port]  # fmt: skip
    assert slots
    os.kill(process, signal.SIGSTOP)
    try:
        calls = [asyncio.create_task(spread.get("door", id)) for id in ids]
        for _ in range(30):
            await asyncio.sleep(0.001)
        ends = await asyncio.gather(*calls, return_exceptions=True)
    finally:
        os.kill(process, signal.SIGCONT)
    assert {type(end).__name__ for end in ends} == {"Instance", "EngineUnavailable"}
    for _ in range(300):
        ends = await asyncio.gather(*(spread.get("door", id) for id in ids), return_exceptions=True)
        if not any(isinstance(end, EngineUnavailable) for end in ends):
            break
        await asyncio.sleep(0.1)
    assert [end.id for end in ends] == ids


async def test_a_cluster_that_cannot_be_reached_is_unavailable_at_the_first_call():
    with pytest.raises(EngineUnavailable, match="cannot be reached"):
        await AsyncEngine.from_url("redis+cluster://127.0.0.1:1").machines()
