"""The background duty that measures: reads the counters of all machines once a minute and keeps the differences."""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable

from machines.engine import Engine
from machines.patterns import Full

from . import recording

log = logging.getLogger(__name__)

MINUTE = 60_000  # ms
SPREAD = (0.5, 3.0)  # s after the full minute: of many workers the first measures, the others find it done
EARLY = 180_000  # ms after the first sampling, and after a gap, in which it is done more often: to see something soon
EARLY_EVERY = 10_000  # ms


class Sampler:
    """Every worker checks each minute whether another has measured already. It needs no database: what it measures
    waits in Redis until a ``Flusher`` has written it. Where as much waits as may, what happens is measured later, as
    one gap."""

    def __init__(self, engine: Engine, *, clock: Callable[[], float] = time.time) -> None:
        self._engine = engine
        self._clock = clock
        self._early = True
        self._full = False

    def once(self) -> bool:
        """Make one pass. There is never more to do at once: False."""
        try:
            self._look()
        except Full as error:
            if not self._full:
                log.warning("statistics are not measured: %s", error)
            self._full = True
        else:
            self._full = False
        return False

    def pause(self) -> float:
        """Return seconds: to a little after the next full minute."""
        if self._early and not self._full:
            return EARLY_EVERY / 1000
        to_minute = 60 - self._clock() % 60
        return to_minute + random.uniform(*SPREAD)  # noqa: S311  spreading load, not a secret

    def _look(self) -> None:
        turn, now = recording.turn(), self._now()
        self._early = now - turn.at > recording.GAP or now - turn.resumed < EARLY
        if not self._is_due(turn, now):
            return
        survey = self._engine.survey(trust=True)
        recording.record(survey, turn, now=max((live.now for live in survey.lives.values()), default=now))

    def _is_due(self, turn: recording.Turn, now: int) -> bool:
        if self._early:
            return abs(now - turn.at) >= EARLY_EVERY * 0.9
        return now // MINUTE != turn.at // MINUTE

    def _now(self) -> int:
        return int(self._clock() * 1000)
