"""What the tests map and reduce, in this process and in workers."""

from __future__ import annotations

import os
import time
from collections import Counter
from typing import Any

from machines.connections import get_engine
from machines.mapreduce import mapper, reducer


@mapper
def same(items: list[Any]) -> list[Any]:
    return items


@reducer
def joined(parts: list[list[Any]]) -> list[Any]:
    return [item for part in parts for item in part]


@mapper
def words(lines: list[str]) -> dict[str, int]:
    return Counter(word for line in lines for word in line.split())


@reducer
def all_words(parts: list[dict[str, int]]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for part in parts:
        total.update(part)
    return total


@mapper
def halved(items: list[int]) -> float:
    """Fails for every chunk that has a zero."""
    return sum(1 / item for item in items)


@mapper
def gated(items: list[int]) -> int:
    """Says which process has which item first, and waits for an element of ``<prefix>go``."""
    engine = get_engine()
    engine.client.rpush(f"{engine.keys.prefix}begun", f"{os.getpid()}:{items[0]}")
    while engine.client.lpop(f"{engine.keys.prefix}go") is None:
        time.sleep(0.02)
    return sum(items)


@mapper
def strange(items: list[Any]) -> Any:
    return {"a set": set(items)}


@reducer
def failing(parts: list[Any]) -> Any:
    raise ValueError(f"cannot reduce {len(parts)} parts")


@reducer
def long(parts: list[int]) -> str:
    return "x" * 100_000
