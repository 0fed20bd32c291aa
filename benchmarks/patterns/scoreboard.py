"""Points for a player and where that leaves them: the usual recipe is ZINCRBY, ZREMRANGEBYRANK, ZREVRANK, ZREVRANGE."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

from benchmarks.stage import PREFIX, Stage
from machines.patterns import Scoreboard

PEER = "ZINCRBY, trim, ZREVRANK by hand"
ADD, DAILY, FADING = "add", "add, a board a day", "add, fading"
TOP_PEER, TOP = "ZREVRANGE of ten by hand", "top ten"
PEERS = {TOP: TOP_PEER}
AIMS = {FADING: None}
NOTE = (
    "Each gives one of 1,050 members a point on a board of 1,000 and learns its place: by hand in one transaction "
    "pipeline (a rank without ties), ours in one call. Ten places by hand are without ranks and ties; ours "
    "are the same command, with one place more that tells a tie. Fading, and its expiry, is something the recipe does "
    "not do."
)
MOST = 1000
MEMBERS = [f"player-{number}" for number in range(1050)]


def contenders(stage: Stage) -> dict[str, Callable[[int], None]]:
    redis, turn = stage.engine.client, count()
    key = f"{PREFIX}byhand:board"

    def member() -> str:
        return MEMBERS[next(turn) * 7 % len(MEMBERS)]

    def by_hand(times: int) -> None:
        for _ in range(times):
            name = member()
            pipeline = redis.pipeline()
            pipeline.zincrby(key, 1, name)
            pipeline.zremrangebyrank(key, 0, -MOST - 1)
            pipeline.zrevrank(key, name)
            pipeline.execute()

    def giving(board: Scoreboard) -> Callable[[int], None]:
        def run(times: int) -> None:
            for _ in range(times):
                board.add(member(), 1)

        return run

    first = Scoreboard(redis, "bench.all", prefix=PREFIX, most=MOST)

    def top_by_hand(times: int) -> None:
        for _ in range(times):
            redis.zrevrange(key, 0, 9, withscores=True)

    def top(times: int) -> None:
        for _ in range(times):
            first.top(10)

    return {
        PEER: by_hand, ADD: giving(first),
        DAILY: giving(Scoreboard(redis, "bench.daily", prefix=PREFIX, most=MOST, period="day", keep=7)),
        FADING: giving(Scoreboard(redis, "bench.fading", prefix=PREFIX, most=MOST, half_life=86_400)),
        TOP_PEER: top_by_hand, TOP: top,
    }  # fmt: skip
