"""A limit of so many in a minute: the usual recipe counts by INCR and EXPIRE under a key that names the minute."""

from __future__ import annotations

import time
from collections.abc import Callable

from benchmarks.stage import PREFIX, Stage
from machines.engine.connection.client import Client
from machines.patterns import Throttle

PEER = "INCR and EXPIRE by hand"
TAKE, COUNT = "take, all allowed", "count, all allowed"
AHEAD, OVER = "take, all allowed, 20 ahead", "take, most refused"
AIMS = {AHEAD: 2.0, OVER: 2.0}
NOTE = (
    "By hand: INCR and EXPIRE of `user:minute` in one transaction pipeline, which costs the same whether the limit is "
    "reached or not, and lets twice the limit through at a minute's edge. Ours reads the server's clock inside Redis. "
    "Asking for each one saves the client half and costs the server twice as much (the call of a function is about a "
    "third of that); twice as fast is who takes some ahead, or remembers a refusal. Five users in turn."
)
USERS = [f"user-{number}" for number in range(5)]
LIMIT, PER = 1000, 60
WIDE = {"limit": 1_000_000, "per": 1}  # more than one client can ask for
NARROW = {"limit": 100, "per": 1}


def over_by_hand(redis: Client, user: str) -> bool:
    key = f"{PREFIX}byhand:{user}:{int(time.time() / PER)}"
    pipeline = redis.pipeline()
    pipeline.incr(key)
    pipeline.expire(key, PER)
    current, _ = pipeline.execute()
    return int(current) > LIMIT


def contenders(stage: Stage) -> dict[str, Callable[[int], None]]:
    redis, throttle = stage.engine.client, Throttle(stage.engine.client, PREFIX)

    def by_hand(times: int) -> None:
        for number in range(times):
            over_by_hand(redis, USERS[number % 5])

    def take(times: int) -> None:
        for number in range(times):
            throttle.take("wide", USERS[number % 5], **WIDE)

    def count(times: int) -> None:
        for number in range(times):
            throttle.count("wide", USERS[number % 5], **WIDE)

    def ahead(times: int) -> None:
        for number in range(times):
            throttle.take("ahead", USERS[number % 5], ahead=20, **WIDE)

    def over(times: int) -> None:
        for number in range(times):
            throttle.take("narrow", USERS[number % 5], **NARROW)

    return {PEER: by_hand, TAKE: take, COUNT: count, AHEAD: ahead, OVER: over}
