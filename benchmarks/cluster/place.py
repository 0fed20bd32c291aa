"""One server, or a cluster: its engines, and what its nodes did."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import median

import redis

from benchmarks.stage import PREFIX
from machines.engine import Engine
from machines.engine.connection import routing


@dataclass(frozen=True, slots=True)
class Place:
    title: str
    url: str

    @contextmanager
    def engine(self, partitions: int) -> Iterator[Engine]:
        """An engine on empty keys."""
        engine = Engine.from_url(self.url, prefix=PREFIX, partitions=partitions)
        for node in nodes(engine):
            node.flushall()
        engine.load_library()
        yield engine
        engine.client.close()


def time_calls(call: Callable[[int], object], times: int) -> float:
    """The median of so many calls, in seconds."""
    taken = []
    for number in range(times):
        began = time.perf_counter()
        call(number)
        taken.append(time.perf_counter() - began)
    return median(taken)


def nodes(engine: Engine) -> list[redis.Redis]:
    """A client of each primary."""
    return routing.list_nodes(engine.client)


def reset(engine: Engine) -> None:
    for node in nodes(engine):
        node.config_resetstat()


def count_calls(engine: Engine, command: str) -> tuple[int, float]:
    """How often the primaries ran a command since the reset, and µs they spent on it."""
    rows = [node.info("commandstats").get(f"cmdstat_{command}", {}) for node in nodes(engine)]
    return sum(row.get("calls", 0) for row in rows), sum(row.get("usec", 0) for row in rows)
