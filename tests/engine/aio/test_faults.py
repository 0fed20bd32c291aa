"""Calls of many tasks while connections break, answers get lost and tasks are cancelled: the counts add up."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections import Counter

import pytest

from machines.engine import AsyncEngine, EngineUnavailable
from tests.engine.builders import machine
from tests.engine.connection.proxies import Relay

pytestmark = [pytest.mark.redis, pytest.mark.faults]

COUNT = machine("tally", {"On": {"on": {"add": {"actions": {"set": {"n": "n + 1"}}}}}}, context={"n": 0})
IDS = [f"x{number}" for number in range(30)]
TASKS, CALLS = 40, 60  # calls of each task
BREAKS = 12


class Load:
    """Tasks that fire and read; some are cancelled. ``unknown``: calls that may or may not have happened."""

    def __init__(self, engine: AsyncEngine) -> None:
        self.engine = engine
        self.chance = random.Random(14)
        self.acknowledged: Counter[str] = Counter()
        self.unknown: Counter[str] = Counter()

    async def add(self, id: str, replicas: int | None) -> None:
        self.unknown[id] += 1
        try:
            fired = await self.engine.fire("tally", id, "add", replicas=replicas)
        except EngineUnavailable as error:
            self.unknown[id] -= error.retry_safe
            return
        assert fired.id == id
        self.unknown[id] -= 1
        self.acknowledged[id] += 1

    async def read(self, id: str) -> None:
        with contextlib.suppress(EngineUnavailable):
            assert (await self.engine.get("tally", id)).id == id
            found = await self.engine.get_many("tally", IDS)
            assert [one.id for one in found if not isinstance(one, EngineUnavailable)] == IDS

    async def work(self) -> None:
        for _ in range(CALLS):
            id, writes = self.chance.choice(IDS), self.chance.random() < 0.7
            call = asyncio.create_task(self.add(id, self.chance.choice([None, 1])) if writes else self.read(id))
            for _ in range(self.chance.randrange(6)):
                await asyncio.sleep(0)
            if self.chance.random() < 0.1:
                call.cancel()
            await asyncio.wait([call])
            assert call.cancelled() or call.exception() is None


async def break_connections(relay: Relay) -> None:
    for _ in range(BREAKS):
        await asyncio.sleep(0.05)
        relay.break_next()
        await asyncio.sleep(0.02)
        relay.mend()


async def test_no_step_is_lost_or_doubled_and_no_answer_goes_to_another_call(relay, prefix):
    async with AsyncEngine.from_url(relay.url, prefix=prefix, replica_timeout=5) as engine:
        load = Load(engine)
        await engine.publish(COUNT)
        for id in IDS:
            await engine.create("tally", id)
        await asyncio.gather(break_connections(relay), *(load.work() for _ in range(TASKS)))
        held = {one.id: one.data["n"] for one in await engine.get_many("tally", IDS)}
    assert sum(load.acknowledged.values()) > TASKS
    for id in IDS:
        assert load.acknowledged[id] <= held[id] <= load.acknowledged[id] + load.unknown[id]
