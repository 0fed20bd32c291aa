"""Who came today: the usual recipe adds to a set or a HyperLogLog under a key that names the day, and asks how many."""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import count

from benchmarks.stage import PREFIX, Stage
from machines.patterns import Cardinality

PEER = "PFADD, EXPIRE, PFCOUNT by hand"
SET = "SADD, EXPIRE, SCARD by hand"
SKETCH, EXACT = "add, a sketch", "add, exact so far"
MONTH_PEER, MONTH = "PFCOUNT of 31 days by hand", "count of a month"
PEERS = {MONTH: MONTH_PEER}
AIMS = {SET: None, MONTH: None}
NOTE = (
    "Each adds one member, of 20,000 in turn, and learns of today's count: by hand in one transaction pipeline, ours "
    "in one call, which says how many were new and turns from exact to sketch by itself. A month is a union of 31 days "
    "of 1,001 members each: PFCOUNT is nearly all of it for either, and ours looks before it whether days have sets "
    "that make it exact."
)
DAY = 86_400
MEMBERS = [f"user-{number}" for number in range(20_000)]


def contenders(stage: Stage) -> dict[str, Callable[[int], None]]:
    redis = stage.engine.client
    sketch = Cardinality(redis, "bench.sketch", prefix=PREFIX, exact=0)
    exact = Cardinality(redis, "bench.exact", prefix=PREFIX, exact=10_000)
    month = Cardinality(redis, "bench.month", prefix=PREFIX)

    def by_hand(add: str, ask: str) -> Callable[[int], None]:
        turn = count()

        def run(times: int) -> None:
            for _ in range(times):
                key = f"{PREFIX}byhand:{add}:{int(time.time() / DAY)}"
                pipeline = redis.pipeline()
                getattr(pipeline, add)(key, MEMBERS[next(turn) % len(MEMBERS)])
                pipeline.expire(key, 40 * DAY)
                getattr(pipeline, ask)(key)
                pipeline.execute()

        return run

    def ours(visitors: Cardinality, members: list[str]) -> Callable[[int], None]:
        turn = count()

        def run(times: int) -> None:
            for _ in range(times):
                visitors.add(members[next(turn) % len(members)])

        return run

    days = _a_month(stage, month)

    def month_by_hand(times: int) -> None:
        for _ in range(times):
            redis.pfcount(*days)

    def of_month(times: int) -> None:
        for _ in range(times):
            month.series("month", 1, at=FIRST * DAY * 1000)

    return {
        PEER: by_hand("pfadd", "pfcount"), SET: by_hand("sadd", "scard"), SKETCH: ours(sketch, MEMBERS),
        EXACT: ours(exact, MEMBERS[:9000]), MONTH_PEER: month_by_hand, MONTH: of_month,
    }  # fmt: skip


FIRST = 20_454  # 2026-01-01, in days


def _a_month(stage: Stage, month: Cardinality) -> list[str]:
    """Fills 31 days twice: as ours, and as one HyperLogLog each."""
    keys = [f"{PREFIX}byhand:month:{day}" for day in range(31)]
    for day, key in enumerate(keys):
        members = [f"{day % 7}-{number}" for number in range(1000)]
        stage.engine.client.pfadd(key, *members)
        month.add(*members, now=(FIRST + day) * DAY * 1000)
        month.add("one more", now=(FIRST + day) * DAY * 1000)
    return keys
