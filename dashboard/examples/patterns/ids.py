"""Ids on the Patterns page: two generators that draw, a node that is taken over, and numbers in blocks."""

from __future__ import annotations

import time
from typing import Any

from django.http import HttpRequest, QueryDict

from machines.connections import get_engine, get_pattern
from machines.engine.connection.client import Client
from machines.engine.pattern_keys import PatternKeys
from machines.patterns import Blocks, Snowflakes, decode
from machines.patterns.ids import Range

TITLE = "Ids"
TELLS = "Unique ids that sort by time, generated locally from time ranges leased in Redis; and numbers in blocks."

NAME, NUMBERS = "demo.ids", "demo.numbers"
LEASE = 5.0  # seconds: short, so that a node can be taken over while one looks
SHOWN = 6  # nodes


class Drawn:
    """What the example draws from."""

    def __init__(self, redis: Client, prefix: str) -> None:
        self.ids = Snowflakes(redis, NAME, prefix=prefix, lease=LEASE)
        self.numbers = Blocks(redis, NUMBERS, size=100, prefix=prefix)


MAKE = Drawn


def example(drawn: Drawn) -> None:
    first, second = drawn.ids.next(), drawn.ids.next()
    assert first < second  # as texts: 13 characters each
    made = decode(first)
    assert (made.node, made.sequence) == (0, 0)
    assert len(set(drawn.ids.many(10_000))) == 10_000  # and no call for any of them
    assert drawn.numbers.many(3) == [1, 2, 3]
    assert drawn.numbers.next_text() == "0000000000000004"


class Pair:
    """Two generators of one name, as two processes would have them."""

    def __init__(self, redis: Client, prefix: str) -> None:
        self.first, self.second = (Snowflakes(redis, NAME, prefix=prefix, lease=LEASE) for _ in range(2))
        self.numbers = Blocks(redis, NUMBERS, size=100, prefix=prefix)


def show(request: HttpRequest) -> dict[str, Any]:
    engine, pair = get_engine(), get_pattern(Pair)
    keys = PatternKeys(engine.keys.prefix).ids(NAME)
    last = engine.client.zrevrange(keys.nodes, 0, SHOWN - 1, withscores=True)
    return {
        "lease": int(LEASE),
        "generators": [_row("first", pair.first.held), _row("second", pair.second.held)],
        "nodes": [{"node": node, "until": int(until)} for node, until in last],
        "keys": [keys.nodes, keys.holders, keys.guard, PatternKeys(engine.keys.prefix).block(NUMBERS).next],
    }


def _row(name: str, held: Range | None) -> dict[str, Any]:
    over = held is not None and held.until <= time.time() * 1000
    return {"name": name, "held": held, "over": over}


def first(request: HttpRequest, asked: QueryDict) -> str:
    return _drawn(get_pattern(Pair).first)


def second(request: HttpRequest, asked: QueryDict) -> str:
    return _drawn(get_pattern(Pair).second)


def _drawn(ids: Snowflakes) -> str:
    made = ids.many(3)
    return f"{', '.join(made)}: by node {decode(made[0]).node}"


def take_over(request: HttpRequest, asked: QueryDict) -> str:
    """The second gives its node back and takes the one whose ranges have been over longest: that of the first, once
    that has been still for a lease."""
    pair = get_pattern(Pair)
    before, still = pair.second.held, pair.first.held
    pair.second.close()
    made = pair.second.next()
    node = decode(made).node
    if still is not None and still.node == node:
        return f"{made}: by node {node}, taken over from the first generator, in a later range"
    was = f", no longer node {before.node}" if before and before.node != node else ""
    return f"{made}: by node {node}{was}, the node free for longest"


def number(request: HttpRequest, asked: QueryDict) -> str:
    return f"{get_pattern(Pair).numbers.next_text()}: one of a block of 100"


ACTS = {"first": first, "second": second, "take_over": take_over, "number": number}
