"""A lock taken and released: the usual recipe is SET NX, an INCR for the fence, and WATCH to release one's own only."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from contextlib import suppress

from redis import WatchError
from redis.lock import Lock as PlainLock

from benchmarks.stage import PREFIX, Stage
from machines.engine.connection.client import Client
from machines.patterns import Locks, Taken

PEER = "SET NX, INCR, WATCH by hand"
PLAIN = "redis-py's Lock, without a fence"
HERE, REFUSED, LOOK = "take and release", "refused: somebody has it", "take, renew, release"
AIMS = {PLAIN: None, REFUSED: None, LOOK: None}
NOTE = (
    "By hand: SET NX PX, INCR of a fence in a call of its own, then WATCH, GET, MULTI, DEL, EXEC to release what is "
    "still one's own: five round trips. Ours are two, and the fence is drawn in the one that takes. redis-py's Lock is "
    "two as well (SET NX, EVALSHA) and has no fence."
)


def by_hand(redis: Client, key: str) -> int:
    token = secrets.token_hex(16)
    if not redis.set(key, token, nx=True, px=30_000):
        return 0
    fence = redis.incr(f"{key}:fence")
    with redis.pipeline() as pipeline:
        try:
            pipeline.watch(key)
            if pipeline.get(key) == token:
                pipeline.multi()
                pipeline.delete(key)
                pipeline.execute()
        except WatchError:
            pass
    return int(fence)


def contenders(stage: Stage) -> dict[str, Callable[[int], None]]:
    redis, locks = stage.engine.client, Locks(stage.engine.client, PREFIX)
    token = "f" * 32
    locks._take("busy", token, 3_600_000, "somebody", None)
    plain = PlainLock(redis, f"{PREFIX}plain", timeout=30)

    def hand(times: int) -> None:
        for _ in range(times):
            by_hand(redis, f"{PREFIX}byhand:lock")

    def alone(times: int) -> None:
        for _ in range(times):
            plain.acquire(blocking=False)
            plain.release()

    def here(times: int) -> None:
        for _ in range(times):
            locks.lock("free").acquire().release()

    def look(times: int) -> None:
        for _ in range(times):
            held = locks.lock("free").acquire()
            held.renew()
            held.release()

    def refused(times: int) -> None:
        lock = locks.lock("busy")
        for _ in range(times):
            with suppress(Taken):
                lock.acquire()

    return {PEER: hand, PLAIN: alone, HERE: here, LOOK: look, REFUSED: refused}
