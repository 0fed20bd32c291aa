"""Virtual time: a clock that a test moves, and engines whose calls happen at its time."""

import functools
import inspect
import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Self

from machines.engine import AsyncEngine, Engine, Explanation, Refused, SignalboxError, arguments
from machines.engine.definitions.durations import HINT, parse_duration
from machines.engine.jobs import records as job_records

_WEEKS = re.compile(r"\b(\d{1,6}(?:\.\d{1,3})?) ?w(?:eeks?)?\b")
Duration = str | int | float | timedelta
Moment = int | datetime
_MANY: dict[str, Callable[[Any], Any]] = {
    "fire_many": arguments.read_fire,
    "fire_revisions": arguments.read_fire,
    "enqueue_many": job_records.read_item,
}


class Clock:
    """A clock that stands still until it is moved, and only moves forward. ``now`` is in ms since the epoch, as
    everywhere in the engine; it begins at the real time."""

    def __init__(self, now: int | None = None) -> None:
        self.now = time.time_ns() // 1_000_000 if now is None else now

    def move(self, now: int) -> None:
        self.now = max(self.now, now)


def read_duration(duration: Duration) -> int:
    """Return a duration in ms: of seconds, of a timedelta, or of a text such as ``"30d"``, ``"2w"`` or ``"1h 30m"``.
    Raises ValueError."""
    if isinstance(duration, timedelta):
        length: float | None = duration / timedelta(milliseconds=1)
    elif isinstance(duration, str):
        text = _WEEKS.sub(lambda found: f"{float(found[1]) * 7:g}d", duration)
        parts = [parse_duration(part) for part in text.split()] or [None]
        length = None if None in parts else sum(part or 0 for part in parts)
    elif isinstance(duration, (int, float)) and not isinstance(duration, bool):
        length = duration * 1000
    else:
        length = None
    if length is not None and length < 0:
        raise ValueError(f"{duration!r} is no duration from now on; the clock only moves forward")
    if length is None or not 0 <= length < 1e14:
        raise ValueError(f"{duration!r} is no duration; {HINT}, a number of seconds or a timedelta")
    return round(length)


def read_moment(moment: Moment) -> int:
    """Return a moment in ms since the epoch. Raises ValueError."""
    if isinstance(moment, datetime):
        if moment.tzinfo is None:
            raise ValueError(f"{moment!r} has no time zone; write datetime(..., tzinfo=UTC)")
        return round(moment.timestamp() * 1000)
    if isinstance(moment, int) and not isinstance(moment, bool):
        return moment
    raise ValueError(f"{moment!r} is no moment; write ms since the epoch, or a datetime with a time zone")


class ClockedCalls:
    """The part of the engines below that stamps calls with the time of their clock."""

    clock: Clock

    @classmethod
    def at(cls, clock: Clock, url: str, **options: Any) -> Self:
        """Connect as ``from_url`` does."""
        engine: Any = cls
        engine = engine.from_url(url, **options)
        engine.clock = clock
        return engine

    @functools.cached_property
    def false_guards(self) -> Counter[tuple[str, str]]:
        """Machine and transition -> how often an explanation named its guard as false."""
        return Counter()

    def note(self, found: object) -> None:
        """Count the false guards of an explanation."""
        if isinstance(found, Explanation):
            self.false_guards.update((found.machine, one.id) for one in found.candidates if one.verdict == "guard")

    def stamp(self, item: Any, read: Callable[[Any], Any]) -> Any:
        """Return one call of many with the time of the clock; what is no call stays for the engine to refuse."""
        if isinstance(item, Mapping):
            return item if item.get("now") is not None else {**item, "now": self.clock.now}
        try:
            call = read(item)
        except SignalboxError:
            return item
        return call if call.now is not None else replace(call, now=self.clock.now)


class ClockedEngine(ClockedCalls, Engine):
    """An engine whose calls happen at the time of ``clock``, unless a call says ``now``."""


class ClockedAsyncEngine(ClockedCalls, AsyncEngine):
    """The same for asyncio."""


def _at_clock(method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def call(self: ClockedCalls, *args: Any, now: int | None = None, **options: Any) -> Any:
        at = self.clock.now if now is None else now
        try:
            found = method(self, *args, now=at, **options)
        except Refused as error:
            self.note(error.explanation)
            raise
        self.note(found)
        return found

    return call


def _stamp_each(method: Callable[..., Any], read: Callable[[Any], Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def call(self: ClockedCalls, items: Iterable[Any], **options: Any) -> Any:
        return method(self, [self.stamp(item, read) for item in items], **options)

    return call


def _clock_methods(engine: type, clocked: type) -> None:
    """Have every public method of an engine that takes ``now``, or calls that take it, use the clock."""
    for name, method in inspect.getmembers(engine, inspect.isfunction):
        if name in _MANY:
            setattr(clocked, name, _stamp_each(method, _MANY[name]))
        elif not name.startswith("_") and re.search(r"\bnow:|RepairOptions", str(inspect.signature(method))):
            setattr(clocked, name, _at_clock(method))


_clock_methods(Engine, ClockedEngine)
_clock_methods(AsyncEngine, ClockedAsyncEngine)
