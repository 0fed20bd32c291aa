"""Scoreboards of each machine: busiest transitions, most refused events, slowest states.

A duty of a worker sets them once a minute: edges and events to what was measured of the UTC day so far, states to how
long the instance in the middle has stood there. Setting is absolute, so that it may be done twice, late, or by two.
"""

from __future__ import annotations

import logging
import random
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import lru_cache

from machines.catalog import queries
from machines.conf.database import DatabaseRetry
from machines.connections import get_engine
from machines.engine import Engine, Live, SignalboxError
from machines.engine.connection.client import Client
from machines.engine.instances.activity import merge_medians
from machines.engine.keys import Keys
from machines.patterns import Place, Scoreboard

from .models import Measurement

log = logging.getLogger(__name__)

DAY = 86_400  # s
WEEK = 7  # days that are kept, and added up
MOST = 500  # edges or events of a day: as many as one definition seldom has
LATE = 300  # s after midnight in which the last minutes of the day before are still on their way
PAUSE = (15.0, 60.0)  # s: while nothing is there yet, and then
QUIET = 1800.0  # s between two times that the boards of a machine are set on which nothing happens
RECENT = 180.0  # s after a change: by then it is measured and written
UNHEARD = "(events nothing listens for)"
"""In place of the name of an event that no version knows: they are counted together, under an empty name."""


class MachineScoreboard(Scoreboard):
    """One of a machine's, kept beside its instances. ``kind``: edges, refused or states."""

    def __init__(self, redis: Client, prefix: str, machine: str, kind: str) -> None:
        super().__init__(redis, kind, prefix=prefix, most=MOST, period="day", keep=0 if kind == "states" else WEEK)
        self._root = Keys(prefix).partition(machine).board(kind)


@lru_cache(maxsize=1024)
def _scoreboard(engine: Engine, machine: str, kind: str) -> MachineScoreboard:
    return MachineScoreboard(engine.client, engine.keys.prefix, machine, kind)


def board(machine: str, kind: str) -> MachineScoreboard:
    return _scoreboard(get_engine(), machine, kind)


def busiest(machine: str, kind: str, n: int, *, days: int = 1, at: int | None = None) -> list[Place]:
    """Return the first ``n`` edges (``<version>:<transition>``) or refused events of today, or of the last so many
    days."""
    return board(machine, kind).top(n, span=days, at=at)


def slowest(machine: str, n: int, *, at: int | None = None) -> list[Place]:
    """Return the states in which half of the instances have stood longest; the score is that time in ms, a minute old
    at most, half an hour where nothing happens."""
    return board(machine, "states").top(n, at=at)


class ScoreboardUpdate:
    """The duty."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._filled = False
        self._empty: set[str] = set()  # machines whose instances rest in no state, and whose board says so
        self._changes = engine.wakeups.watch_changes(whole=float("inf"))
        self._all_at = -QUIET  # monotonic seconds
        self._changed: dict[str, float] = {}  # machine -> monotonic seconds of its latest change
        self._database = DatabaseRetry(log, "scoreboards cannot be filled: %s")

    def once(self) -> bool:
        """Make one pass. There is never more to do at once: False."""
        with self._database.around():
            current_versions = self._engine.recent_versions()
            roots = self._engine.wakeups.roots(current_versions)
            now = time.monotonic()
            self._changed |= {roots[root][0]: now for root in self._changes.find(roots)}
            is_whole = now - self._all_at >= QUIET
            due = [name for name in current_versions if is_whole or now - self._changed.get(name, now) <= RECENT]
            lives = self._engine.survey(trust=True).lives if due else {}
            measured = self._list_measured() if due else set()
            for machine in due:
                version = int(current_versions[machine].partition(":")[0])
                try:
                    self._filled |= self.fill(machine, version, live=lives.get(machine), measured=machine in measured)
                except SignalboxError as error:
                    log.info("the scoreboards of %s cannot be filled: %s", machine, error)
            if is_whole:
                self._all_at = now
        return False

    @staticmethod
    def _list_measured() -> set[str]:
        """Return the machines of which there are measurements of the last days."""
        since = (int(time.time()) // DAY - 2) * DAY
        rows = Measurement.objects.filter(period=Measurement.Period.HOUR, at__gte=since)
        return set(rows.values_list("machine", flat=True).distinct())

    def pause(self) -> float:
        return PAUSE[self._filled] * random.uniform(0.8, 1.2)  # noqa: S311  spreading load, not a secret

    def fill(
        self, machine: str, version: int, *, now: int | None = None, live: Live | None = None, measured: bool = True
    ) -> bool:
        """Measure one machine; tell whether anything was measured. ``now``: ms; ``live``: its figures, where known;
        ``measured``: whether there may be measurements."""
        live = live or self._engine.live(machine, now=now)
        self._stays(machine, version, live.counts, live.now)
        if not measured:
            return False
        days = {(live.now // 1000 - late) // DAY for late in (LATE, 0)}
        found = [self._day(machine, day, live.now) for day in sorted(days)]
        return any(found)

    def _day(self, machine: str, day: int, now: int) -> bool:
        totals: dict[str, Counter[str]] = {"edges": Counter(), "refused": Counter()}
        rows = Measurement.objects.filter(machine=machine, period=Measurement.Period.HOUR)
        for numbers in rows.filter(at__gte=day * DAY, at__lt=(day + 1) * DAY).values_list("numbers", flat=True):
            for kind, total in totals.items():
                total.update(numbers.get(kind, {}))
        # The moment that says which day it is: its last one, once it is over.
        moment = min(now, (day + 1) * DAY * 1000 - 1)
        for kind, total in totals.items():
            if total:
                scores = {name or UNHEARD: count for name, count in total.most_common(MOST)}
                _scoreboard(self._engine, machine, kind).set_many(scores, now=moment)
        return any(totals.values())

    def _stays(self, machine: str, version: int, counts: Mapping[str, int], now: int) -> None:
        """Tell whether states stay in the scoreboard: those that hold nobody any more go."""
        if machine in self._empty and not any(counts.values()):
            return
        states = list(self._resting(machine, version, counts))[:MOST]
        since = merge_medians(self._engine.activity().ages(machine, states))
        states_of = _scoreboard(self._engine, machine, "states")
        if since:
            states_of.set_many({state: max(0, now - at) for state, at in since.items()}, now=now)
        empty = [state for state in counts if state not in since]
        if empty:
            states_of.remove(*empty[:1000], now=now)
        (self._empty.discard if since else self._empty.add)(machine)

    def _resting(self, machine: str, version: int, counts: Mapping[str, int]) -> Iterator[str]:
        """Return states with instances in them, without the final ones: who has arrived is in no hurry."""
        final = {state.name for state in queries.outline_of(machine, version).states if state.type == "final"}
        return (state for state, count in counts.items() if count and state not in final)
