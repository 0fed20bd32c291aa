"""Ids: the usual recipe takes the unique part of each by WATCH, GET, MULTI and SET, or a range of numbers so."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from redis import WatchError

from benchmarks.stage import PREFIX, Stage
from machines.engine.connection.client import Client
from machines.engine.ids.codec import encode
from machines.patterns import Blocks, Snowflakes

PEER = "Snowflake by hand, its sequence by WATCH"
RANGES = "ranges of 1000 by hand, by WATCH"
SNOWFLAKES, MANY, BLOCKS = "Snowflakes.next", "Snowflakes.many(100)", "Blocks.next, size 1000"
AIMS = {SNOWFLAKES: 2.0, MANY: 2.0, BLOCKS: 2.0, RANGES: None}
LEAST = {BLOCKS: 1_000_000}
NOTE = (
    "By hand: the machine's clock, a fixed node, and a sequence that WATCH, GET, MULTI, SET takes for each id; nothing "
    "keeps a second process from the same node. Snowflakes ask once in a lease for node and range of time, Blocks once "
    "in a thousand numbers."
)
SIZE = 1000


def taken(redis: Client, key: str, count: int) -> int:
    """Compare and set until it works: the first of ``count`` numbers."""
    while True:
        pipeline = redis.pipeline()
        try:
            pipeline.watch(key)
            first = int(pipeline.get(key) or 0)
            pipeline.multi()
            pipeline.set(key, first + count)
            pipeline.execute()
            return first
        except WatchError:
            continue
        finally:
            pipeline.reset()


def numbers(redis: Client, key: str) -> Iterator[int]:
    while True:
        first = taken(redis, key, SIZE)
        yield from range(first, first + SIZE)


def contenders(stage: Stage) -> dict[str, Callable[[int], None]]:
    redis = stage.engine.client
    ids, blocks = Snowflakes(redis, prefix=PREFIX), Blocks(redis, "numbers", size=SIZE, prefix=PREFIX)
    ranges = numbers(redis, f"{PREFIX}byhand:range")

    def by_hand(times: int) -> None:
        for _ in range(times):
            sequence = taken(redis, f"{PREFIX}byhand:sequence", 1)
            encode(int(time.time() * 1000), 7, sequence & 4095)

    def by_ranges(times: int) -> None:
        for _ in range(times):
            next(ranges)

    def snowflakes(times: int) -> None:
        for _ in range(times):
            ids.next()

    def many(times: int) -> None:
        for start in range(0, times, 100):
            ids.many(min(100, times - start))

    def in_blocks(times: int) -> None:
        for _ in range(times):
            blocks.next()

    return {PEER: by_hand, RANGES: by_ranges, SNOWFLAKES: snowflakes, MANY: many, BLOCKS: in_blocks}
