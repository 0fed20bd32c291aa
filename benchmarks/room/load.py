"""Steps while people look: one process fires as fast as it may, and marks moments on the way."""

from __future__ import annotations

import os
import time
from multiprocessing.connection import Connection as Pipe

from benchmarks.stage import PREFIX, call_many
from machines.engine import Engine

DEPTH = 16
PAUSE = 0.2  # seconds between two marks
IDS = 400  # instances that are fired at in turn
ASK = "t2"  # the transition of a desk that marks take


def serve(pipe: Pipe, url: str, machine: str, rate: int) -> None:
    """Told (seconds) it fires so long, ``rate`` steps a second or as many as go at 0; answers (steps, {count: moment}).

    A moment is when the mark's step was answered, in s since the epoch; the count is that of its transition then.
    """
    load = _Load(Engine.from_url(url, prefix=PREFIX), machine, rate)
    while (seconds := pipe.recv()) is not None:
        try:
            pipe.send(load.run(seconds))
        except Exception as error:
            pipe.send(RuntimeError(f"the load: {error!r}"))


class _Load:
    def __init__(self, engine: Engine, machine: str, rate: int) -> None:
        self._engine, self._machine, self._rate = engine, machine, rate
        self._root = engine.keys.partition(machine).root
        self._turn = 0
        self._marked = f"marked-{os.getpid()}"
        for id in (self._marked, *self._ids()):
            self._call(("sb_create", id, '{"customer":"load"}'))
        self._call(*self._fires("take"))
        self._turns = self._fires("hold"), self._fires("answer")

    def _ids(self) -> list[str]:
        return [f"load-{os.getpid()}-{number}" for number in range(IDS)]

    def _fires(self, event: str) -> list[tuple[str, ...]]:
        return [("sb_fire", id, event) for id in self._ids()]

    def _call(self, *calls: tuple[str, ...]) -> int:
        return call_many(self._engine.client, self._root, calls, DEPTH)

    def run(self, seconds: float) -> tuple[int, dict[int, float]]:
        steps, marks, count = 0, {}, self._marks()
        started = time.time()
        mark_at = started
        while (now := time.time()) < started + seconds:
            if now >= mark_at:
                self._call(("sb_fire", self._marked, "ask"))
                count += 1
                marks[count] = time.time()
                mark_at = now + PAUSE
            if self._rate and steps > (now - started) * self._rate:
                time.sleep(0.002)
                continue
            calls = self._turns[self._turn // IDS % 2]
            place = self._turn % IDS
            steps += self._call(*calls[place : place + DEPTH])
            self._turn += DEPTH
        return steps, marks

    def _marks(self) -> int:
        flow = self._engine.live(self._machine).flow
        return flow.get(mark(self._engine, self._machine), 0)


def mark(engine: Engine, machine: str) -> str:
    """The counter of the transition that marks take, as live values have it."""
    return f"{engine.live(machine).version}:{ASK}"
