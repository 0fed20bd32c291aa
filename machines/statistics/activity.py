"""Counts active instances and active people today, this week, this month (UTC).

Instances are counted beside the steps, from the sets of states, by a duty of a worker: a step pays nothing for it. It
looks every twenty seconds, so that one that came and was deleted in between is missed. People are counted where the
audit is written. Whatever is counted twice counts once.
"""

from __future__ import annotations

import logging
import math
import random
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary

from machines.connections import get_engine, get_pattern
from machines.engine import Engine, SignalboxError
from machines.engine.connection.client import Client
from machines.patterns import Cardinality, Count
from machines.patterns.cardinality import read_counts

log = logging.getLogger(__name__)

PERIODS = ("day", "week", "month")
PAUSE = 20.0  # s
EVERY = 60.0  # s between two notes of one person in one process
MAX_NOTED = 10_000  # people a process remembers
_noted: WeakKeyDictionary[Cardinality, dict[int, float]] = WeakKeyDictionary()
Counts = dict[str, Count]
"""period -> how many"""


class ActivityCounter:
    """The duty. Several at once only share the work."""

    def __init__(self, engine: Engine, *, pause: float = PAUSE) -> None:
        self._engine = engine
        self._pause = pause

    def once(self) -> bool:
        """A thousand instances of each partition; whether there are more."""
        return self._engine.activity().count()

    def pause(self) -> float:
        return self._pause * random.uniform(0.8, 1.2)  # noqa: S311  spreading load, not a secret


@dataclass(frozen=True, slots=True)
class Activity:
    """``moved``: instances, of all machines that were asked for; ``by_machine``: of each. ``people``: who took an
    action anywhere; None where that was not requested."""

    moved: Counts
    by_machine: dict[str, Counts] = field(default_factory=dict)
    people: Counts | None = None


def operators(redis: Client, prefix: str) -> Cardinality:
    """The count of people: for ``get_pattern``."""
    return Cardinality(redis, "operators", prefix=prefix)


def count_operator(actor: Any) -> None:
    """Count a person who took an action: once a minute in each process, since days are counted. A failure to count
    fails nothing else."""
    if isinstance(actor, str) or actor.pk is None:
        return
    count, now = get_pattern(operators), time.monotonic()
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


def activity(machines: Iterable[str], *, people: bool = False, at: int | None = None) -> Activity:
    """Of these machines, which the caller's viewer may all see; ``people``: only for viewers of every machine.

    One round trip, and three for people. Raises EngineUnavailable. ``at``: ms.
    """
    found: dict[str, dict[str, list[Count]]] = {name: {period: [] for period in PERIODS} for name in machines}
    for machine, place, *row in get_engine().activity().moved(found, [(period, 1) for period in PERIODS], at):
        found[machine][PERIODS[place]] += read_counts(row)
    by_machine = {name: _together(parts) for name, parts in found.items()}
    moved = _together({period: [each[period] for each in by_machine.values()] for period in PERIODS})
    return Activity(moved, by_machine, _people(at) if people else None)


def _people(at: int | None) -> Counts:
    count = get_pattern(operators).count
    return {period: count(period, at=at) for period in PERIODS}


def _together(parts: Mapping[str, Sequence[Count]]) -> Counts:
    return {period: together(each) for period, each in parts.items()}


def together(parts: Sequence[Count]) -> Count:
    """Of counts that have no member in common, as those of partitions and of machines: the sum. The errors of several
    sketches are independent, so that the sum's is smaller than theirs."""
    number = sum(part.number for part in parts)
    spread = math.sqrt(sum((part.error * part.number) ** 2 for part in parts))
    return Count(
        number,
        all(part.exact for part in parts),
        round(spread / number, 4) if number else 0.0,
        max((part.begin for part in parts), default=0),
    )
