"""Reads how the jobs of an invoke or an ``enqueue`` are worked on: retries, times, priority, uniqueness."""

from __future__ import annotations

from machines.engine import limits
from machines.engine.definitions.durations import read_delay, read_duration
from machines.engine.definitions.model import Value, Work
from machines.engine.definitions.place import Place
from machines.engine.definitions.values import read_value

KEYS = ("retry", "lease", "timeout", "priority", "delay", "unique")
HINTS = {
    "data": 'write "input"',
    "attempts": 'write "retry": {"attempts": 3}',
    "backoff": 'write "retry": {"backoff": "1s"}',
    "key": 'write "unique"',
    "deadline": 'write "timeout"',
}
_RETRY_HINTS = {"delay": 'write "backoff"', "max": 'write "attempts"', "except": 'write "stop"', "not": 'write "stop"'}
_DEFAULT = Work()


def read_work(place: Place) -> Work:
    attempts, backoff, jitter, stop = _read_retry(place.get("retry"))
    delay = place.get("delay")
    unique = place.get("unique")
    return Work(
        attempts=attempts,
        backoff=backoff,
        jitter=jitter,
        stop=stop,
        lease=read_duration(place.get("lease"), limits.DEFAULT_LEASE, limits.MIN_LEASE, limits.MAX_LEASE),
        timeout=read_duration(place.get("timeout"), 0, limits.MIN_LEASE, limits.MAX_TIMEOUT),
        priority=_read_priority(place.get("priority")),
        delay=read_delay(delay) if delay else None,
        unique=_read_text(unique) if unique else None,
    )


def _read_text(place: Place) -> Value | None:
    return (
        None
        if place.text("an expression in quotes", 'write it as text, such as "serial"') is None
        else read_value(place)
    )


def _read_priority(place: Place | None) -> Value | None:
    """Read a priority: a number, or an expression that gives one."""
    if place is None or place.broken:
        return None
    if isinstance(place.value, str):
        return read_value(place)
    number = place.whole(0, limits.MAX_PRIORITY)
    return None if number in (None, limits.DEFAULT_PRIORITY) else Value(["num", number], str(number))


def _read_retry(place: Place | None) -> tuple[int, int, bool, tuple[str, ...]]:
    """Read the number of attempts, the backoff in ms, whether it has jitter, and what is not retried."""
    default = _DEFAULT
    if place is None or not place.is_object("an object", 'write {"attempts": 3, "backoff": "1s"}'):
        return default.attempts, default.backoff, default.jitter, default.stop
    place.refuse_unknown(("attempts", "backoff", "jitter", "stop"), _RETRY_HINTS)
    attempts, jitter = place.get("attempts"), place.get("jitter")
    count = attempts.whole(1, limits.MAX_ATTEMPTS) if attempts else None
    backoff = read_duration(place.get("backoff"), default.backoff, 0, limits.MAX_BACKOFF)
    spread = jitter.flag() if jitter else None
    return count or default.attempts, backoff, True if spread is None else spread, _read_stop(place.get("stop"))


def _read_stop(place: Place | None) -> tuple[str, ...]:
    names: list[str] = []
    for one in place.one_or_many() if place else ():
        name = one.text("the name of an exception", 'write ["ValueError"]')
        if name is None:
            continue
        if (why := limits.check_exception_kind(name)) is not None:
            one.error("SB107", f"the exception {name!r} {why}")
        names.append(name)
    if place is not None and len(names) > limits.MAX_STOPS:
        place.error("SB111", f"{len(names)} exceptions; at most {limits.MAX_STOPS} are allowed")
    return tuple(names)
