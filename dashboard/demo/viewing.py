"""Adds up viewing figures for the demo with map-reduce."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from random import Random

from dashboard.examples.handlers import add_up, minutes_watched
from machines.engine import Engine
from machines.mapreduce import MapReduce
from machines.mapreduce.store import RUN

ACTOR = "traffic"
NAME = "viewing"
VIEWS = 600  # items of a run: as many as make several chunks, and few enough to be nothing to Redis
CHUNKS = 20
LONGEST = 180  # minutes of one viewing
KEPT = 300  # seconds a run that is over stays to be looked at
OVER = ("done", "failed")


class Viewing:
    """Each ``move`` begins one run; it may raise what the engine raises. ``device`` draws one, and ``services`` are
    what people watch on it."""

    def __init__(
        self, engine: Engine, random: Random, device: Callable[[Random], str], services: Sequence[str]
    ) -> None:
        self._engine = engine
        self._random = random
        self._device = device
        self._services = services

    def move(self) -> None:
        """Start one run at a time: while the workers are away, runs do not pile up."""
        self._clear()
        if self._engine.find(RUN, state="mapping", limit=1).instances:
            return
        run = MapReduce(NAME, minutes_watched, add_up, CHUNKS, engine=self._engine)
        run.add_items(self._views())
        run.map()

    def _views(self) -> Iterator[list[str | int]]:
        for _ in range(VIEWS):
            yield [self._device(self._random), self._random.choice(self._services), self._random.randint(1, LONGEST)]

    def _clear(self) -> None:
        for state in OVER:
            for run in self._engine.find(RUN, state=state, older_than=KEPT, limit=5):
                self._engine.fire(RUN, run.id, "remove", actor=ACTOR, reason="looked at long enough")
