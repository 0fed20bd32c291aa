"""Measures: once a minute a worker reads the engine's cumulative counters, and puts what has happened since the last
reading into a write buffer, in one call with the new reading: whichever worker samples, whenever and however often,
each count is put there once. ``writing`` takes it from there to SQL.

The order is what makes that so: the readings are looked up *before* the counters are read, and the call is refused
unless they are still the same. A reading that is older than the last one can therefore never come after it. One that
dies before its call leaves nothing, and the next one covers its time. SQL is not asked: while it is away, minutes
wait in Redis.

The counters of a machine are one nested document: ``{"edges": {...}, "refused": {...}, "queues": {queue: {"enqueued":
n, ..., "waits": {...}}}}``. Its leaves are whole numbers, its keys texts, since it is kept as JSON.
"""

from __future__ import annotations

import json
import logging
import random
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from machines.connections import get_pattern
from machines.engine import Engine, Live, QueueStats, Survey
from machines.patterns import Changed, Full, Write, WriteBuffer
from machines.patterns.write_buffer import MAX_MARK, MAX_NAMES

from .models import Measurement

log = logging.getLogger(__name__)

Period = Measurement.Period
Counters = dict[str, Any]

GAP = 150_000
"""ms between two readings from which on nobody can say in which minute something happened."""

MOST = 50_000  # entries that wait: an hour of 800 machines, or a day of 30
AT_ONCE = 50  # machines of one call
TURN = ":turn"  # no machine is called so
SAMPLED = "turn"  # the entity that says when; those of machines hold spaces
COVERED, INSTANCES = "covered", "instances"


def buffer() -> WriteBuffer:
    """Return the buffer of this process."""
    return get_pattern(WriteBuffer, "statistics", most=MOST)


@dataclass(frozen=True, slots=True)
class Stretch:
    """One machine's part of one sampling: what happened from ``begin`` to ``end``, ms."""

    machine: str
    begin: int
    end: int
    numbers: Counters
    instances: int

    def write(self) -> Write:
        """Write to the minute its middle lies in, or to a gap of its own. Each stretch leaves its begin and end as a
        field."""
        span = self.end - self.begin
        minute = (self.end - span // 2) // 60_000 * 60
        period, at = (Period.MINUTE, minute) if span <= GAP else (Period.GAP, self.begin // 1000)
        counters = {path_text(path): count for path, count in leaves(self.numbers)}
        fields = {str(self.begin): self.end, INSTANCES: self.instances}
        return Write(f"{self.machine} {int(period)} {at}", counters | {COVERED: span}, fields)


@dataclass(frozen=True, slots=True)
class Turn:
    """When it was sampled: last, first of all, and first after the last gap, ms by the clock of Redis; 0 for never.

    ``texts``: the readings as they stood then, by machine. Of two who sample at once the second finds them changed.
    """

    at: int = 0
    began: int = 0
    resumed: int = 0
    texts: Mapping[str, str] = field(default_factory=dict)

    def next(self, now: int) -> Turn:
        resumed = self.resumed if self.began and now - self.at <= GAP else now
        return Turn(now, self.began or now, resumed)

    @property
    def numbers(self) -> dict[str, int]:
        return {"at": self.at, "began": self.began, "resumed": self.resumed}


@dataclass(frozen=True, slots=True)
class Reading:
    """The counters of one machine as they were read: what the next differences are taken from."""

    at: int
    counters: Counters

    def text(self) -> str:
        return json.dumps([self.at, self.counters], separators=(",", ":"), ensure_ascii=False)

    @classmethod
    def of(cls, text: str | None) -> Reading | None:
        """Return None for none, and for something foreign in its place."""
        try:
            at, counters = json.loads(text or "")
            return cls(int(at), dict(counters))
        except (ValueError, TypeError):
            return None


def turn() -> Turn:
    """Take the turn, before the counters are read. Raises EngineUnavailable."""
    texts = buffer().marks()
    try:
        held = json.loads(texts.get(TURN, "{}"))
        return Turn(*(int(held.get(name, 0)) for name in ("at", "began", "resumed")), texts)
    except (ValueError, TypeError, AttributeError):  # something foreign is in its place
        return Turn(texts=texts)


def readings(machines: Iterable[str]) -> dict[str, Reading]:
    """Return the last ones of these machines, of those that have any."""
    found = {name: Reading.of(text) for name, text in buffer().marks(machines).items()}
    return {name: reading for name, reading in found.items() if reading is not None}


def record(survey: Survey, seen: Turn, *, now: int) -> bool:
    """Add the differences. False, and nothing is added, where another worker sampled since ``seen``.

    ``now``: ms by the clock of Redis. A machine that is met for the first time only leaves its reading: when its counts
    came about nobody knows. So does one whose counters went back. Raises EngineUnavailable, and Full where as much
    waits for the database as may: then nothing moves, and it becomes a gap.
    """
    fresh, names = seen.next(now), sorted(survey.lives)
    writes = [Write(SAMPLED, fields=fresh.numbers)]
    marks = {TURN: (seen.texts.get(TURN), json.dumps(fresh.numbers))}
    if now == seen.at:
        return False
    for first in range(0, max(1, len(names)), AT_ONCE):
        for name in names[first : first + AT_ONCE]:
            _read(survey, seen, name, now, writes, marks)
        try:
            buffer().add_many(writes, marks=marks, now=now)
        except Changed:
            if first == 0:
                return False
        writes, marks = [], {}
    return True


def _read(
    survey: Survey, seen: Turn, name: str, now: int, writes: list[Write], marks: dict[str, tuple[str | None, str]]
) -> None:
    """Read the new reading among the marks, and what lies between the two among the writes."""
    live = survey.lives[name]
    fresh, held = Reading(now, counters_of(live, survey.queues.get(name, {}))), seen.texts.get(name)
    write, text = _write(fresh, held, live), fresh.text()
    if len(text) > MAX_MARK // 4 or (write is not None and len(write.counters) > MAX_NAMES - 100):
        log.error("%s counts too many different things to be measured: %d bytes", name, len(text))
        return
    if text != held:
        marks[name] = (held, text)
    if write is not None:
        writes.append(write)


def _write(fresh: Reading, held: str | None, live: Live) -> Write | None:
    before = Reading.of(held)
    if before is None or fresh.at <= before.at:  # a clock that was set back
        return None
    try:
        numbers = difference(fresh.counters, before.counters)
    except WentBack:
        return None
    return Stretch(live.machine, before.at, fresh.at, numbers, live.total).write()


OF_QUEUES = ("enqueued", "taken", "completed", "failed", "lost", "died")
HISTOGRAMS = ("waits", "runs")
DERIVED = frozenset({"enqueued"})
"""Worked out from where jobs are: it may step back by itself, which says nothing about the server."""


class WentBack(Exception):
    """A counter that only grows is smaller than it was: another server, an older file, or one that began anew."""


def counters_of(live: Live, queues: Mapping[str, QueueStats]) -> Counters:
    """Return all of one machine, without what is 0."""
    return _keep_known(
        {
            "edges": dict(live.flow),
            "refused": dict(live.refused),
            "queues": {name: _of_queue(stats) for name, stats in queues.items()},
        }
    )


def _of_queue(stats: QueueStats) -> Counters:
    counted = {name: getattr(stats, name) for name in OF_QUEUES}
    magnitudes = {name: {str(size): count for size, count in getattr(stats, name).items()} for name in HISTOGRAMS}
    return counted | magnitudes


def _keep_known(document: Counters) -> Counters:
    found = {name: _keep_known(value) if isinstance(value, dict) else value for name, value in document.items()}
    return {name: value for name, value in found.items() if value}


def difference(new: Counters, old: Counters) -> Counters:
    """Return what was added since, without what was not. Raises WentBack."""
    found: Counters = {}
    for name in new.keys() | old.keys():
        after, before = new.get(name), old.get(name)
        if isinstance(after or before, dict):
            added: Any = difference(after or {}, before or {})
        else:
            added = (after or 0) - (before or 0)
            if added < 0 and name not in DERIVED:
                raise WentBack(name)
        if added and (isinstance(added, dict) or added > 0):
            found[name] = added
    return found


def add_counters(a: Counters, b: Counters) -> Counters:
    """Return both added up."""
    found = dict(a)
    for name, value in b.items():
        held = found.get(name)
        if isinstance(value, dict):
            found[name] = add_counters(held or {}, value)
        else:
            found[name] = (held or 0) + value
    return found


def leaves(numbers: Counters, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], int]]:
    """Yield each number with the names that lead to it."""
    for name, value in numbers.items():
        if isinstance(value, dict):
            yield from leaves(value, (*path, name))
        else:
            yield (*path, name), value


def path_text(path: tuple[str, ...]) -> str:
    """Return the path as one text, which ``build`` reads."""
    return json.dumps(path, separators=(",", ":"), ensure_ascii=False)


def build(counted: Mapping[str, int]) -> Counters:
    """Return the document that these texts and numbers are the leaves of."""
    found: Counters = {}
    for text, count in counted.items():
        *inner, last = json.loads(text)
        place = found
        for name in inner:
            place = place.setdefault(name, {})
        place[last] = count
    return found


def sums(numbers: Counters) -> dict[str, int]:
    """Return the columns of a ``Measurement``."""
    queues = numbers.get("queues", {}).values()

    def of(*names: str) -> int:
        return sum(queue.get(name, 0) for queue in queues for name in names)

    return {
        "transitions": sum(numbers.get("edges", {}).values()),
        "refused": sum(numbers.get("refused", {}).values()),
        "enqueued": of("enqueued"),
        "completed": of("completed"),
        "failed": of("failed", "lost"),
        "died": of("died"),
    }


MINUTE = 60_000  # ms
SPREAD = (0.5, 3.0)  # s after the full minute: of many workers the first measures, the others find it done
EARLY = 180_000  # ms after the first sampling, and after a gap, in which it is done more often: to see something soon
EARLY_EVERY = 10_000  # ms


class Sampler:
    """Every worker checks each minute whether another has measured already. It needs no database: what it measures
    waits in Redis until a ``BufferFlush`` has written it. Where as much waits as may, what happens is measured later,
    as one gap."""

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
        seen, now = turn(), self._now()
        self._early = now - seen.at > GAP or now - seen.resumed < EARLY
        if not self._is_due(seen, now):
            return
        survey = self._engine.survey(trust=True)
        record(survey, seen, now=survey.now or now)

    def _is_due(self, seen: Turn, now: int) -> bool:
        if self._early:
            return abs(now - seen.at) >= EARLY_EVERY * 0.9
        return now // MINUTE != seen.at // MINUTE

    def _now(self) -> int:
        return int(self._clock() * 1000)
