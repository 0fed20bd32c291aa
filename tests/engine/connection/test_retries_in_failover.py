"""While the replica of a node takes over, callers wait inside of their calls and need no loop of their own."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Callable

import pytest

from machines.engine import AsyncEngine, Engine, EngineUnavailable
from machines.engine.connection.cluster_routing import find_slot
from tests.clusters import Cluster
from tests.engine.builders import machine, publish

LONG = 90.0  # seconds: a busy machine takes its time to elect
IDS = [f"i{number:02}" for number in range(24)]
TICKS = machine("ticks", {"On": {"on": {"tick": {"actions": {"set": {"n": "n + 1"}}}}}}, context={"n": 0})


@pytest.fixture
def engine(cluster: Cluster):
    engine = Engine.from_url(cluster.url, partitions=12, retry_for=LONG)
    publish(engine, TICKS, *IDS)
    yield engine
    for id in IDS:
        engine.delete("ticks", id)
    engine.client.close()


class Callers:
    """Threads that repeat a call until a failover is over; what each raised."""

    def __init__(self, *calls: Callable[[int], object]) -> None:
        self.errors: Counter[str] = Counter()
        self.done = 0
        self._over = threading.Event()
        self._threads = [threading.Thread(target=self._run, args=(call,)) for call in calls]

    def _run(self, call: Callable[[int], object]) -> None:
        number = 0
        while not self._over.is_set():
            number += 1
            try:
                call(number)
                self.done += 1
            except EngineUnavailable as error:
                self.errors["safe" if error.retry_safe else "unknown"] += 1

    def __enter__(self) -> Callers:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()


def fail_over(cluster: Cluster, engine: Engine) -> None:
    """Kill the node of an instance, and return when its replica has its place."""
    owner = cluster.owner_of(find_slot(engine.keys.partition("ticks", 0).root))
    owner.kill()
    cluster.wait_settled()
    owner.revive()
    cluster.wait_settled()


def test_no_error_that_is_safe_to_repeat_reaches_a_caller(cluster, engine):
    def read(number: int) -> None:
        engine.get("ticks", IDS[number % len(IDS)])

    def fire_with_key(number: int) -> None:
        engine.fire("ticks", IDS[number % len(IDS)], "tick", key=f"k{number}")

    with Callers(read, fire_with_key) as callers:
        fail_over(cluster, engine)
    assert callers.errors == {}
    assert callers.done > len(IDS)


def test_without_a_key_only_unknown_outcomes_do(cluster, engine):
    def fire(number: int) -> None:
        engine.fire("ticks", IDS[number % len(IDS)], "tick")

    with Callers(fire, fire) as callers:
        fail_over(cluster, engine)
    assert "safe" not in callers.errors
    assert callers.errors["unknown"] <= 2, "at most what was under way in each thread"
    ticks = sum(engine.get("ticks", id).data["n"] for id in IDS)
    assert ticks <= callers.done + callers.errors["unknown"], "no step was taken twice"


def test_without_time_they_do(cluster, engine):
    at_once = engine.at_once()
    with Callers(lambda number: at_once.fire("ticks", IDS[number % len(IDS)], "tick")) as callers:
        fail_over(cluster, engine)
    assert callers.errors["safe"] > 0


def test_tasks_of_an_async_engine_wait_too(cluster, engine):
    async def run() -> list[int]:
        async with AsyncEngine.from_url(cluster.url, partitions=12, retry_for=LONG) as tasks:
            await asyncio.gather(*(tasks.get("ticks", id) for id in IDS))
            failing = asyncio.create_task(asyncio.to_thread(fail_over, cluster, engine))
            rounds = 0
            while not failing.done() or rounds == 0:
                rounds += 1
                calls = (tasks.fire("ticks", id, "tick", key=f"r{rounds}") for id in IDS)
                await asyncio.gather(*calls)
            await failing
            return [(await tasks.get("ticks", id)).data["n"] - rounds for id in IDS]

    assert asyncio.run(run()) == [0] * len(IDS)
