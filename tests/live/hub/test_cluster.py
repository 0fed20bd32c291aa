"""On a Redis Cluster every primary makes the notifications of its own keys only."""

from __future__ import annotations

from dashboard.api.live import read
from dashboard.live.hub.hub import Hub
from dashboard.live.limits import Limits
from dashboard.live.topics import parse
from machines.engine.keys import Keys
from tests.engine.connection import clusters
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
