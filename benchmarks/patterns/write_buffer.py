"""Writes to a few hundred entities, and writing them out: by hand a pipeline for each write, and four commands for each
entity of a flush."""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import cycle

from benchmarks.stage import PREFIX, Stage
from machines.engine.connection.client import Client
from machines.patterns import Write, WriteBuffer

PEER = "HINCRBY, HSET, ZADD by hand, and a flush of 100"
ONE, MANY = "add one at a time, and a flush of 100", "add 100 at a time, and a flush of 100"
AIMS = {ONE: None, MANY: 2.0}
NOTE = (
    "An operation is one write to one of 100 entities; after each hundred all are written out. By hand: HINCRBY, HSET "
    "and ZADD in a pipeline; then ZRANGE, HGETALL and DEL of each in a pipeline, ZREM. What a flusher holds that dies "
    "there is lost. Ours: one call for a write or for a hundred; claim and settle for a flush, and nothing is lost. "
    "One at a time costs the server more than three plain commands: it checks bounds and exactness, and names each "
    "entry; who has many writes adds them together."
)
ENTITIES = [f"user-{number}" for number in range(100)]


def add_by_hand(redis: Client, entity: str) -> None:
    key, now = f"{PREFIX}byhand:{entity}", time.time()
    pipeline = redis.pipeline(transaction=False)
    pipeline.hincrby(key, "seen", 1)
    pipeline.hset(key, "at", str(now))
    pipeline.zadd(f"{PREFIX}byhand:pending", {key: now})
    pipeline.execute()


def flush_by_hand(redis: Client) -> list[dict[str, str]]:
    keys = redis.zrange(f"{PREFIX}byhand:pending", 0, 99)
    pipeline = redis.pipeline(transaction=False)
    for key in keys:
        pipeline.hgetall(key)
        pipeline.delete(key)
    found = pipeline.execute()[::2]
    redis.zrem(f"{PREFIX}byhand:pending", *keys)
    return found


def contenders(stage: Stage) -> dict[str, Callable[[int], None]]:
    redis, buffer = stage.engine.client, WriteBuffer(stage.engine.client, "bench", prefix=PREFIX)

    hands, ones, several = (cycle(ENTITIES) for _ in range(3))
    gathered: list[Write] = []

    def flush() -> None:
        buffer.flush(lambda batch: None, limit=100)

    def by_hand(times: int) -> None:
        for _ in range(times):
            entity = next(hands)
            add_by_hand(redis, entity)
            if entity == ENTITIES[-1]:
                flush_by_hand(redis)

    def one(times: int) -> None:
        for _ in range(times):
            entity = next(ones)
            buffer.add(entity, counters={"seen": 1}, fields={"at": time.time()})
            if entity == ENTITIES[-1]:
                flush()

    def many(times: int) -> None:
        for _ in range(times):
            gathered.append(Write(next(several), {"seen": 1}, {"at": time.time()}))
            if len(gathered) == 100:
                buffer.add_many(gathered)
                gathered.clear()
                flush()

    return {PEER: by_hand, ONE: one, MANY: many}
