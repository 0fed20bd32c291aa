"""Counts active instances and active people today, this week, this month (UTC).

Instances are counted beside the steps, from the sets of states, by a duty of a worker: a step pays nothing for it. It
looks every twenty seconds, so that one that came and was deleted in between is missed. People are counted where the
audit is written. Whatever is counted twice counts once.
"""

from __future__ import annotations

import logging
import math
import random
import threading
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary

from machines.connections import get_engine, get_pattern
from machines.engine import Engine, SignalboxError
from machines.patterns import Cardinality, Count
from machines.patterns.cardinality import read_counts

log = logging.getLogger(__name__)

PERIODS = ("day", "week", "month")
PAUSE = 20.0  # s
EVERY = 60.0  # s between two notes of one person in one process
MAX_NOTED = 10_000  # people a process remembers
FEW = 50  # machines whose activity is read while a page waits
MAX_AGE = 60.0  # seconds: beyond that many machines, their activity is at most this old while pages ask for it
AT_ONCE, REST = 4, 9  # machines of one reading; rests as long as nine readings
_kept: WeakKeyDictionary[Engine, KeptActivity] = WeakKeyDictionary()
_noted: WeakKeyDictionary[Cardinality, dict[int, float]] = WeakKeyDictionary()
Counts = dict[str, Count]
"""period -> how many"""


class ActivityCounter:
    """The duty. Several at once only share the work."""

    def __init__(self, engine: Engine, *, pause: float = PAUSE) -> None:
        self._activity = engine.activity()
        self._pause = pause

    def once(self) -> bool:
        """Count a thousand instances of each partition; tell whether there are more."""
        return self._activity.count()

    def pause(self) -> float:
        return self._pause * random.uniform(0.8, 1.2)  # noqa: S311  spreading load, not a secret


@dataclass(frozen=True, slots=True)
class Activity:
    """``moved``: instances, of all machines that were asked for; ``by_machine``: of each."""

    moved: Counts
    by_machine: dict[str, Counts] = field(default_factory=dict)


def operators() -> Cardinality:
    """Return the count of people."""
    return get_pattern(Cardinality, "operators")


def count_operator(actor: Any) -> None:
    """Count a person who took an action: once a minute in each process, since days are counted. A failure to count
    fails nothing else."""
    if isinstance(actor, str) or actor.pk is None:
        return
    count, now = operators(), time.monotonic()
    noted = _noted.setdefault(count, {})
    if now - noted.get(actor.pk, -EVERY) < EVERY:
        return
    try:
        count.add(str(actor.pk))
    except SignalboxError as error:
        log.info("who is active could not be counted: %s", error)
        return
    if len(noted) >= MAX_NOTED:
        noted.clear()
    noted[actor.pk] = now


def activity(machines: Iterable[str], *, at: int | None = None) -> Activity:
    """Count the instances of these machines that moved, in one round trip; on a cluster those of the partitions that
    answer. Raises EngineUnavailable. ``at``: ms."""
    return _sum_up(_read(get_engine(), list(machines), at))


def kept_activity(machines: Collection[str]) -> Activity | None:
    """Return the same for pages. Of more than ``FEW`` machines it is up to ``MAX_AGE`` seconds old, and None until it
    was read for the first time: a thread of the process reads it, at a tenth of the server's time. Raises
    EngineUnavailable."""
    if len(machines) <= FEW:
        return activity(machines)
    engine = get_engine()
    found = _kept.setdefault(engine, KeptActivity(engine)).read(machines)
    return None if found is None else _sum_up(found)


def _read(engine: Engine, machines: Sequence[str], at: int | None) -> dict[str, Counts]:
    found: dict[str, dict[str, list[Count]]] = {name: {period: [] for period in PERIODS} for name in machines}
    for machine, place, *row in engine.activity().count_moved(found, [(period, 1) for period in PERIODS], at):
        found[machine][PERIODS[place]] += read_counts(row)
    return {name: _add_periods(parts) for name, parts in found.items()}


def _sum_up(by_machine: dict[str, Counts]) -> Activity:
    moved = _add_periods({period: [each[period] for each in by_machine.values()] for period in PERIODS})
    return Activity(moved, by_machine)


class KeptActivity:
    """Counts of one engine's machines, read by a thread while pages want them."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._lock = threading.Lock()
        self._counts: dict[str, tuple[float, Counts]] = {}  # machine -> monotonic seconds at which they were read
        self._wanted: set[str] = set()
        self._reader: threading.Thread | None = None

    def read(self, machines: Collection[str]) -> dict[str, Counts] | None:
        """Return the counts of each machine; None while one was never read."""
        now = time.monotonic()
        with self._lock:
            self._wanted |= {name for name in machines if self._is_old(name, now)}
            if self._wanted and (self._reader is None or not self._reader.is_alive()):
                self._reader = threading.Thread(target=self._run, name="activity", daemon=True)
                self._reader.start()
            if not all(name in self._counts for name in machines):
                return None
            return {name: self._counts[name][1] for name in machines}

    def _is_old(self, name: str, now: float) -> bool:
        return name not in self._counts or now - self._counts[name][0] > MAX_AGE / 2

    def _run(self) -> None:
        while names := self._take():
            began = time.monotonic()
            try:
                found = _read(self._engine, names, None)
            except SignalboxError as error:
                log.warning("activity cannot be read: %s", error)
                return
            with self._lock:
                self._counts |= {name: (time.monotonic(), counts) for name, counts in found.items()}
            time.sleep((time.monotonic() - began) * REST)

    def _take(self) -> list[str]:
        with self._lock:
            names = sorted(self._wanted)[:AT_ONCE]
            self._wanted.difference_update(names)
            return names


def count_people(at: int | None = None) -> Counts:
    """Count the people who acted, on any machine: for viewers of every machine. Raises EngineUnavailable."""
    count = operators().count
    return {period: count(period, at=at) for period in PERIODS}


def _add_periods(parts: Mapping[str, Sequence[Count]]) -> Counts:
    return {period: add_counts(each) for period, each in parts.items()}


def add_counts(parts: Sequence[Count]) -> Count:
    """Add counts that have no member in common, as those of partitions and of machines. The errors of several
    sketches are independent, so that the sum's is smaller than theirs."""
    number = sum(part.number for part in parts)
    spread = math.sqrt(sum((part.error * part.number) ** 2 for part in parts))
    return Count(
        number,
        all(part.exact for part in parts),
        round(spread / number, 4) if number else 0.0,
        max((part.begin for part in parts), default=0),
    )
