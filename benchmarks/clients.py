"""Part two: what one synchronous Python client gets out of it, call by call and in pipelines of 100."""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Callable, Mapping

from machines.engine import Fire, Instance

from . import watch
from .report import Row, Section
from .rounds import Measured, interleave
from .stage import PREFIX, Stage
from .workloads import PHASES, TOKEN, peer_root

PIPELINE = 100
PAYLOAD = {"token": TOKEN}
WORDS = ("entitle", json.dumps(PAYLOAD, separators=(",", ":")), "", "", "", "")  # of sb_fire, between id and time
SINGLE = [f"ATV-single-{number:03}:NBCSports" for number in range(PIPELINE)]
MANY = [f"ATV-many-{number:03}:NBCSports" for number in range(PIPELINE)]
TURNS = [(id, now) for now in PHASES for id in SINGLE]  # each instance goes once round the cycle


class Client:
    """Every contender has accounts of its own and keeps its place in the cycle between rounds."""

    def __init__(self, stage: Stage, seconds: float) -> None:
        self._stage = stage
        self._engine = stage.engine
        self._redis = stage.engine.client
        self._seconds = seconds
        self._root = peer_root(PREFIX)
        self._ours = stage.engine.keys.partition("activation").root

    def sections(self, rounds: int) -> list[Section]:
        return [self._single(rounds), self._pipelined(rounds)]

    def _single(self, rounds: int) -> Section:
        self._stage.enrol(SINGLE)
        for id in SINGLE:
            watch.enrol(self._redis, f"{PREFIX}watch:{id}")
        turns = itertools.cycle(TURNS)  # of the engine: its contenders move the same instances
        found = interleave(
            rounds,
            {
                "watch": self._timed(itertools.cycle(TURNS), self._watch),
                "hand": self._timed(itertools.cycle(TURNS), self._hand),
                "raw": self._timed(turns, self._raw),
                "fire": self._timed(turns, self._fire),
                "short": self._timed(turns, self._fire_short),
            },
        )
        watched, hand, raw, fire, short = (found[name] for name in ("watch", "hand", "raw", "fire", "short"))
        return Section(
            "One client, one call at a time (redis-py)",
            [
                Row("WATCH, MULTI, EXEC in Python", watched.rate),
                Row("hand-written Lua transition", hand.rate, {"WATCH": hand.against(watched)}),
                Row("FCALL sb_fire", raw.rate, {"hand-written": raw.against(hand)}),
                Row("fire", fire.rate, _compare(fire, {"WATCH": watched, "hand-written": hand, "FCALL sb_fire": raw})),
                Row(
                    "fire, the revision alone",
                    short.rate,
                    _compare(short, {"hand-written": hand, "FCALL sb_fire": raw}),
                ),
            ],
        )

    def _pipelined(self, rounds: int) -> Section:
        self._stage.enrol(MANY)
        turns = itertools.cycle(PHASES)  # of the engine: its contenders move the same instances
        found = interleave(
            rounds,
            {
                "hand": self._timed(itertools.cycle(PHASES), self._hand_many, PIPELINE),
                "raw": self._timed(turns, self._raw_many, PIPELINE),
                "fire": self._timed(turns, self._fire_many, PIPELINE),
                "short": self._timed(turns, self._fire_many_short, PIPELINE),
            },
        )
        hand, raw, fire, short = (found[name] for name in ("hand", "raw", "fire", "short"))
        return Section(
            f"One client, pipelines of {PIPELINE}",
            [
                Row("hand-written Lua transition, pipeline", hand.rate),
                Row("FCALL sb_fire, pipeline", raw.rate, {"hand-written": raw.against(hand)}),
                Row("fire_many", fire.rate, _compare(fire, {"hand-written": hand, "FCALL sb_fire": raw})),
                Row(
                    "fire_many, revisions alone",
                    short.rate,
                    _compare(short, {"hand-written": hand, "FCALL sb_fire": raw}),
                ),
            ],
        )

    def _timed(self, turns: itertools.cycle, call: Callable, each: int = 1) -> Callable[[], float]:
        def run() -> float:
            done, started = 0, time.perf_counter()
            deadline = started + self._seconds
            while time.perf_counter() < deadline:
                call(next(turns))
                done += each
            return done / (time.perf_counter() - started)

        return run

    def _watch(self, turn: tuple[str, int]) -> None:
        watch.entitle(self._redis, f"{PREFIX}watch:{turn[0]}", TOKEN, turn[1] // 1000)

    def _hand(self, turn: tuple[str, int]) -> None:
        self._redis.execute_command("FCALL", "bench_entitle", 1, self._root, turn[0], TOKEN, turn[1])

    def _raw(self, turn: tuple[str, int]) -> None:
        self._redis.execute_command("FCALL", "sb_fire", 1, self._ours, turn[0], *WORDS, turn[1])

    def _fire(self, turn: tuple[str, int]) -> None:
        self._engine.fire("activation", turn[0], "entitle", PAYLOAD, now=turn[1])

    def _fire_short(self, turn: tuple[str, int]) -> None:
        self._engine.fire_revision("activation", turn[0], "entitle", PAYLOAD, now=turn[1])

    def _hand_many(self, now: int) -> None:
        pipeline = self._redis.pipeline(transaction=False)
        for id in MANY:
            pipeline.execute_command("FCALL", "bench_entitle", 1, self._root, id, TOKEN, now)
        pipeline.execute()

    def _raw_many(self, now: int) -> None:
        pipeline = self._redis.pipeline(transaction=False)
        for id in MANY:
            pipeline.execute_command("FCALL", "sb_fire", 1, self._ours, id, *WORDS, now)
        pipeline.execute()

    def _fire_many_short(self, now: int) -> None:
        calls = [Fire("activation", id, "entitle", PAYLOAD, now=now) for id in MANY]
        results = self._engine.fire_revisions(calls)
        if not all(isinstance(result, int) for result in results):
            raise RuntimeError(f"a call was not accepted: {results[0]}")

    def _fire_many(self, now: int) -> None:
        results = self._engine.fire_many([Fire("activation", id, "entitle", PAYLOAD, now=now) for id in MANY])
        if not all(isinstance(result, Instance) for result in results):
            raise RuntimeError(f"a call was not accepted: {results[0]}")


def _compare(mine: Measured, peers: Mapping[str, Measured]) -> dict[str, float]:
    return {name: mine.against(peer) for name, peer in peers.items()}
