"""Calls of several threads while a node dies, or a slot moves: errors by kind, and the time to recover."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial

import redis

from benchmarks.report import Aim, Row, Section
from machines.engine import Engine, SignalboxError
from machines.engine.errors import EngineUnavailable
from machines.engine.keys import crc16
from tests.clusters import Cluster

from .place import Place

THREADS, PARTITIONS, REPLICAS = 6, 12, 1
COUNTER = {
    "id": "counter",
    "initial": "On",
    "context": {"n": 0},
    "states": {"On": {"on": {"add": {"actions": {"set": {"n": "n + 1"}}}}}},
}


@dataclass
class Load:
    """Fires of one thread. ``unknown``: calls that may have happened; ``worst``: longest seconds without a success."""

    acknowledged: int = 0
    unknown: int = 0
    errors: Counter[str] = field(default_factory=Counter)
    worst: float = 0.0


@contextmanager
def loaded(engine: Engine, ids: list[str]) -> Iterator[dict[str, Load]]:
    loads, stop = {id: Load() for id in ids}, threading.Event()
    threads = [threading.Thread(target=_fire, args=(engine, id, load, stop)) for id, load in loads.items()]
    for thread in threads:
        thread.start()
    try:
        yield loads
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def _fire(engine: Engine, id: str, load: Load, stop: threading.Event) -> None:
    last = time.monotonic()
    while not stop.is_set():
        try:
            engine.fire("counter", id, "add")
        except SignalboxError as error:
            safe = isinstance(error, EngineUnavailable) and error.retry_safe
            final = not isinstance(error, EngineUnavailable)
            load.errors["final" if final else "retry is safe" if safe else "may have happened"] += 1
            load.unknown += not safe
            time.sleep(0.01)
            continue
        now = time.monotonic()
        load.acknowledged, load.worst, last = load.acknowledged + 1, max(load.worst, now - last), now


def fail_over(place: Place, cluster: Cluster) -> Section:
    section = Section("A primary goes away", [], f"{THREADS} threads fire without pause; node timeout 2 s.")
    for title, act in (
        ("CLUSTER FAILOVER of the owner of slot 0", lambda: cluster.fail_over(cluster.owner_of(0))),
        ("SIGKILL of the owner of slot 0", lambda: cluster.owner_of(0).kill()),
    ):
        _watch(section, place, title, act, 12.0)
        cluster.revive()
        cluster.wait_settled()
    return section


def reshard(place: Place, cluster: Cluster) -> Section:
    slot = crc16(b"counter:0") % 16384
    section = Section("A slot moves", [], f"{THREADS} threads fire without pause; 1,200 instances in the slot.")
    for title, move in (
        ("CLUSTER MIGRATESLOTS of a busy slot", _migrate),
        ("key by key, as redis-cli --cluster reshard", _move_keys),
    ):
        _watch(section, place, title, partial(move, cluster, slot), 8.0)
    return section


def _watch(section: Section, place: Place, title: str, act: Callable[[], object], seconds: float) -> None:
    with place.engine(PARTITIONS) as engine:
        engine.publish(COUNTER)
        ids = [id for id in (f"c{n}" for n in range(40000)) if crc16(id.encode()) % PARTITIONS == 0][:1200]
        for id in ids:
            engine.create("counter", id)
        others = [next(f"o{n}" for n in range(9999) if crc16(f"o{n}".encode()) % PARTITIONS == p) for p in range(1, 6)]
        for id in others:
            engine.create("counter", id)
        busy = [ids[0], *others][:THREADS]
        with loaded(engine, busy) as loads:
            time.sleep(2.0)
            began = time.monotonic()
            act()
            took = time.monotonic() - began
            time.sleep(seconds)
        lost = doubled = 0
        for id, load in loads.items():
            n = engine.get("counter", id).data["n"]
            lost, doubled = lost + max(0, load.acknowledged - n), doubled + max(0, n - load.acknowledged - load.unknown)
    errors: Counter[str] = sum((load.errors for load in loads.values()), Counter())
    told = ", ".join(f"{count:,} {kind}" for kind, count in errors.items()) or "none"
    steps = sum(load.acknowledged for load in loads.values())
    note = f"{steps:,} steps; errors: {told}; lost {lost}, doubled {doubled}; took {took:.2f} s"
    worst = max(load.worst for load in loads.values())
    section.rows.append(Row(f"{title}: longest pause", worst, unit="s", note=note))
    section.aims.append(Aim(f"{title}: final errors", 0, errors["final"], at_most=True))
    section.aims.append(Aim(f"{title}: steps doubled", 0, doubled, at_most=True))


def _ends(cluster: Cluster, slot: int) -> tuple[redis.Redis, redis.Redis, int]:
    owner = cluster.owner_of(slot)
    target = next(node for node in cluster.primary_nodes() if node is not owner)
    return owner.client(), target.client(), target.port


def _migrate(cluster: Cluster, slot: int) -> None:
    old, new, port = _ends(cluster, slot)
    id = new.execute_command("CLUSTER", "MYID")
    old.execute_command("CLUSTER", "MIGRATESLOTS", "SLOTSRANGE", slot, slot, "NODE", id)
    while cluster.owner_of(slot).port != port:
        time.sleep(0.01)


def _move_keys(cluster: Cluster, slot: int) -> None:
    old, new, port = _ends(cluster, slot)
    id = new.execute_command("CLUSTER", "MYID")
    new.execute_command("CLUSTER", "SETSLOT", slot, "IMPORTING", old.execute_command("CLUSTER", "MYID"))
    old.execute_command("CLUSTER", "SETSLOT", slot, "MIGRATING", id)
    while keys := old.execute_command("CLUSTER", "GETKEYSINSLOT", slot, 10):
        old.execute_command("MIGRATE", "127.0.0.1", port, "", 0, 5000, "KEYS", *keys)
    for node in cluster.primary_nodes():
        with node.client() as client:
            client.execute_command("CLUSTER", "SETSLOT", slot, "NODE", id)
