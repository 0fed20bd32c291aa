"""Part two: what one synchronous Python client gets out of it, call by call and in pipelines of 100."""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Callable
from functools import partial

from machines.engine import Fire, Instance

from . import watch
from .report import Section
from .rounds import compare, interleave
from .stage import PREFIX, Stage
from .workloads import PHASES, TOKEN, peer_root

PIPELINE = 100
PAYLOAD = {"token": TOKEN}
WORDS = ("entitle", json.dumps(PAYLOAD, separators=(",", ":")), "", "", "", "")  # of sb_fire, between id and time
SINGLE = [f"ATV-single-{number:03}:NBCSports" for number in range(PIPELINE)]
MANY = [f"ATV-many-{number:03}:NBCSports" for number in range(PIPELINE)]
TURNS = [(id, now) for now in PHASES for id in SINGLE]  # each instance goes once round the cycle
HAND = "hand-written Lua transition"
BOTH = ["hand-written", "FCALL sb_fire"]
PEERS = {
    "FCALL sb_fire": ["hand-written"],
    "fire, the revision alone": BOTH,
    "fire_many": BOTH,
    "fire_many, revisions alone": BOTH,
}


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
        contenders = {
            "WATCH": self._timed(itertools.cycle(TURNS), self._watch),
            "hand-written": self._timed(itertools.cycle(TURNS), self._hand),
            "FCALL sb_fire": self._timed(turns, self._raw),
            "fire": self._timed(turns, self._fire),
            "fire, the revision alone": self._timed(turns, self._fire_short),
        }
        peers = PEERS | {"hand-written": ["WATCH"], "fire": ["WATCH", "hand-written", "FCALL sb_fire"]}
        titles = {"WATCH": "WATCH, MULTI, EXEC in Python", "hand-written": HAND}
        rows = compare(interleave(rounds, contenders), peers, titles)
        return Section("One client, one call at a time (redis-py)", rows)

    def _pipelined(self, rounds: int) -> Section:
        self._stage.enrol(MANY)
        turns = itertools.cycle(PHASES)  # of the engine: its contenders move the same instances
        contenders = {
            "hand-written": self._timed(itertools.cycle(PHASES), self._hand_many, PIPELINE),
            "FCALL sb_fire": self._timed(turns, self._raw_many, PIPELINE),
            "fire_many": self._timed(turns, partial(self._fire_many, self._engine.fire_many, Instance), PIPELINE),
            "fire_many, revisions alone": self._timed(
                turns, partial(self._fire_many, self._engine.fire_revisions, int), PIPELINE
            ),
        }
        titles = {"hand-written": f"{HAND}, pipeline", "FCALL sb_fire": "FCALL sb_fire, pipeline"}
        return Section(f"One client, pipelines of {PIPELINE}", compare(interleave(rounds, contenders), PEERS, titles))

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
        self._send_all("bench_entitle", self._root, TOKEN, now)

    def _raw_many(self, now: int) -> None:
        self._send_all("sb_fire", self._ours, *WORDS, now)

    def _send_all(self, function: str, root: str, *words: str | int) -> None:
        pipeline = self._redis.pipeline(transaction=False)
        for id in MANY:
            pipeline.execute_command("FCALL", function, 1, root, id, *words)
        pipeline.execute()

    def _fire_many(self, call: Callable[[list[Fire]], list[object]], kind: type, now: int) -> None:
        results = call([Fire("activation", id, "entitle", PAYLOAD, now=now) for id in MANY])
        if not all(isinstance(result, kind) for result in results):
            raise RuntimeError(f"a call was not accepted: {results[0]}")
