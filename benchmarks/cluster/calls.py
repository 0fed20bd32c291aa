"""What a step costs the servers and the client, by nodes and partitions."""

from __future__ import annotations

import time
from statistics import median

from benchmarks.report import Aim, Row, Section
from machines.engine import Engine

from .place import Place, count_calls, reset, time_calls

DOOR = {
    "id": "door",
    "initial": "Shut",
    "states": {"Shut": {"on": {"move": "Open"}}, "Open": {"on": {"move": "Shut"}}},
}
INSTANCES, BATCH, BATCHES, SINGLES = 480, 240, 60, 4000
PARTITIONS = (1, 12, 48)


def measure(one: Place, many: Place) -> Section:
    rows = [row for partitions in PARTITIONS for place in (one, many) for row in _measure(place, partitions)]
    ratio = _compare_singles(many)
    note = f"Single calls: median, one client; on the cluster {ratio:.1f} x as long as a bare FCALL at its node."
    aim = Aim("a single call on the cluster, times as long as a bare FCALL at its node", 1.6, ratio, at_most=True)
    return Section("Steps by nodes and partitions", rows, note, [aim])


def _measure(place: Place, partitions: int) -> list[Row]:
    with place.engine(partitions) as engine:
        ids = _create(engine)
        reset(engine)
        started = time.perf_counter()
        for number in range(BATCHES):
            engine.fire_many([("door", ids[(number * BATCH + n) % INSTANCES], "move") for n in range(BATCH)])
        took = time.perf_counter() - started
        calls, spent = count_calls(engine, "fcall")
        single = time_calls(lambda n: engine.fire("door", ids[n % INSTANCES], "move"), SINGLES)
        asked, _ = count_calls(engine, "command|getkeys")
    title = f"{place.title}, {partitions} partition{'s' * (partitions > 1)}"
    return [
        Row(f"{title}: batches of {BATCH}", BATCH * BATCHES / took, note=f"server {spent / calls:.1f} µs a step"),
        Row(f"{title}: single call", single * 1e6, unit="µs", note=f"{asked} × COMMAND GETKEYS" if asked else ""),
    ]


def _create(engine: Engine) -> list[str]:
    engine.publish(DOOR)
    ids = [f"d{number:04}" for number in range(INSTANCES)]
    for id in ids:
        engine.create("door", id)
    return ids


def _compare_singles(place: Place) -> float:
    """A fire by the engine, times a bare FCALL sent straight to the node of its partition; in turn."""
    with place.engine(12) as engine:
        ids = _create(engine)
        client = engine.client
        roots = [engine._catalog.partition("door", id).root for id in ids]
        at = [client.get_redis_connection(client.get_node_from_key(root)) for root in roots]

        def bare(n: int) -> object:
            n %= INSTANCES
            return at[n].fcall("sb_fire", 1, roots[n], ids[n], "move", "", "", "", "", "", "")

        ratios = []
        for _ in range(5):
            ours = time_calls(lambda n: engine.fire("door", ids[n % INSTANCES], "move"), 800)
            ratios.append(ours / time_calls(bare, 800))
        return median(ratios)
