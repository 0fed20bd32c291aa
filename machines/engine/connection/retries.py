"""Repeats calls of the engine that Redis did not carry out, within the time that their caller gives them.

A call is repeated after ``EngineUnavailable`` where that is safe: it changed nothing for certain (``retry_safe``), it
only reads, or it has an idempotency ``key``. A write without a key whose outcome is unknown is never repeated. Pauses
double, with jitter, and end before the deadline; no attempt begins after it. A method may send several calls to Redis:
each one that writes, and may have been carried out, is noted in the attempt that the method began.

A node that stayed away for a whole deadline is given up: further calls on it are tried once, until it has not failed
for ``GIVEN_UP`` seconds. So an outage holds each thread of a process once at most.

``follow`` makes a call again where its instance has moved to, while the number of partitions of a machine grows.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import random
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from typing import Any, TypeVar

from redis import exceptions

from machines.engine import arguments
from machines.engine.errors import EngineUnavailable

from . import waiting
from .cluster_routing import REFUSED
from .connection_cache import UNSENT

Kind = TypeVar("Kind", bound=type)

RETRY_FOR = 5.0  # seconds, of an engine that is given none: a replica takes over, or a server starts, in less
MOST = 3600.0  # seconds
FIRST_PAUSE, LAST_PAUSE = 0.02, 0.5  # seconds between two attempts
GIVEN_UP = 30.0  # seconds since the last failure of a node that was given up
REPEATED = frozenset(["SB500", "SB501"])  # codes: Redis does not answer, an instance moves to another partition
AT_ONCE = frozenset(["ping", "new_id", "at_once"])  # methods whose callers want to know how it is now
BATCHES = frozenset(["fire_many", "fire_revisions", "enqueue_many"])  # methods that return an error for each item
READING = frozenset(
    "EXISTS FCALL_RO GET HGET HGETALL HKEYS HLEN HMGET INFO LLEN LRANGE PING PTTL SCAN SCARD SISMEMBER SMEMBERS TIME"  # noqa: SIM905
    " TYPE XINFO XLEN XRANGE XREAD XREVRANGE ZCARD ZCOUNT ZRANGE ZRANGEBYLEX ZSCAN ZSCORE".split()
)
"""Commands that change nothing; any other one may."""

_wanted: ContextVar[float | None] = ContextVar("retry_for", default=None)


def writes(words: Sequence[Any]) -> bool:
    """Tell whether a command may change something."""
    return words[0] not in READING


class Attempt:
    """One try of a method. ``changed``: whether a call of it that writes was carried out, or may have been; ``read``:
    whether one failed that only reads."""

    __slots__ = ("changed", "read")

    def __init__(self) -> None:
        self.changed = self.read = False

    def may_be_repeated(self, retry_safe: bool) -> bool:
        """Tell whether the method changed nothing for certain. ``retry_safe``: what the error says of its last call."""
        return not self.changed and (retry_safe or self.read)


current: ContextVar[Attempt | None] = ContextVar("attempt", default=None)


def note_change() -> None:
    """Note that a call which writes was carried out, or may have been."""
    attempt = current.get()
    if attempt is not None:
        attempt.changed = True


def note_answers(writing: bool, answers: Sequence[Any]) -> None:
    """Note several calls, by what came back for each. ``writing``: whether any of them may change something."""
    attempt = current.get()
    if attempt is None:
        return
    if not writing:
        attempt.read = attempt.read or any(isinstance(answer, Exception) for answer in answers)
    elif any(not is_refused(answer) for answer in answers):
        attempt.changed = True


def is_refused(answer: Any) -> bool:
    """Tell whether an answer says that nothing was carried out for certain."""
    if not isinstance(answer, Exception):
        return is_elsewhere(answer)
    return isinstance(answer, (*REFUSED, exceptions.ResponseError)) or bool(getattr(answer, UNSENT, False))


@contextlib.contextmanager
def skip_notes() -> Iterator[None]:
    """Leave out calls whose repeat does no harm, as that of a range of ids."""
    token = current.set(None)
    try:
        yield
    finally:
        current.reset(token)


@contextlib.contextmanager
def retry_for(seconds: float) -> Iterator[None]:
    """Give the calls within so many seconds to be repeated in, each and whatever the option of the engine says; 0 for
    none."""
    token = _wanted.set(check_seconds(seconds))
    try:
        yield
    finally:
        _wanted.reset(token)


def check_seconds(seconds: float) -> float:
    """Return a time to retry for. Raises BadInput."""
    return float(arguments.check_seconds("retry_for", seconds, MOST))


class Retries:
    """Repeats the calls of one engine. Safe to share between threads."""

    def __init__(self, seconds: float | None) -> None:
        self._seconds = RETRY_FOR if seconds is None else check_seconds(seconds)
        self._given_up: dict[str, float] = {}  # node -> when it failed last, on the monotonic clock

    def run(self, call: Callable[[], Any], keyed: bool) -> Any:
        """Call, and again while that is safe and there is time. Raises as the call does; EngineUnavailable is
        ``retry_safe`` only where no attempt can have changed anything."""
        begun = time.monotonic()
        deadline: Deadline | None = None
        unknown: EngineUnavailable | None = None
        while True:
            attempt = Attempt()
            token = current.set(attempt)
            try:
                return call()
            except EngineUnavailable as error:
                failure = error
            finally:
                current.reset(token)
            deadline = deadline or self.begin(begun)
            if attempt.changed:
                unknown = unknown or _make_unsafe(failure)
            safe = keyed or attempt.may_be_repeated(failure.retry_safe)
            if not (safe and failure.code in REPEATED and deadline.pause(failure.node)):
                raise unknown or failure

    def begin(self, begun: float) -> Deadline:
        """Return the time in which a call that began at a moment of the monotonic clock may be repeated."""
        wanted = _wanted.get()
        return Deadline(begun, self._seconds if wanted is None else wanted, self._given_up)


class Deadline:
    """The time in which one call may be repeated."""

    def __init__(self, begun: float, seconds: float, given_up: dict[str, float]) -> None:
        self._until = begun + seconds
        self._patient = seconds > 0
        self._given_up = given_up
        self._pause = FIRST_PAUSE

    def pause(self, node: str) -> bool:
        """Wait before the next attempt; return False where there is no time for one, or the node was given up."""
        now, pause = time.monotonic(), self._pause * random.uniform(0.5, 1.0)  # noqa: S311
        if not self._patient:
            return False
        if now - self._given_up.get(node, -GIVEN_UP) < GIVEN_UP or now + pause >= self._until:
            self._given_up[node] = now
            return False
        self._given_up.pop(node, None)
        self._pause = min(2 * self._pause, LAST_PAUSE)
        waiting.pause(pause)
        return True


def _make_unsafe(error: EngineUnavailable) -> EngineUnavailable:
    """Return the error of a call that may have changed something, whatever its last part says of itself."""
    if not error.retry_safe:
        return error
    made = EngineUnavailable(
        f"{error.message}; earlier parts of the call have happened", code=error.code, node=error.node
    )
    made.__cause__ = error
    return made


def retry_methods(engine: Kind) -> Kind:
    """Have the public methods of a class repeated by its attribute ``_retries``."""
    found: dict[str, Callable[..., Any]] = {}
    for kind in engine.__mro__:
        for name, method in vars(kind).items():
            if inspect.isfunction(method) and not name.startswith("_") and name not in AT_ONCE:
                found.setdefault(name, method)
    for name, method in found.items():
        setattr(engine, name, _wrap(method))
    return engine


def _wrap(method: Callable[..., Any]) -> Callable[..., Any]:
    parameters = inspect.signature(method).parameters
    iterates = any("Iterable" in str(one.annotation) for one in parameters.values())

    @functools.wraps(method)
    def repeat(self: Any, *args: Any, **kwargs: Any) -> Any:
        if current.get() is not None:  # a part of another method, which is repeated as a whole
            return method(self, *args, **kwargs)
        if iterates:  # an iterator would be empty the second time
            args = tuple(_keep(one) for one in args)
            kwargs = {name: _keep(one) for name, one in kwargs.items()}
        return self._retries.run(lambda: method(self, *args, **kwargs), kwargs.get("key") is not None)

    @functools.wraps(method)
    def repeat_parts(self: Any, items: Iterable[Any], **kwargs: Any) -> list[Any]:
        if current.get() is not None:
            return method(self, items, **kwargs)  # type: ignore[no-any-return]
        return _send_parts(self._retries, lambda part: method(self, part, **kwargs), list(items))

    return repeat_parts if method.__name__ in BATCHES else repeat


def _keep(given: Any) -> Any:
    return list(given) if hasattr(given, "__next__") else given


def _send_parts(retries: Retries, send: Callable[[list[Any]], list[Any]], items: list[Any]) -> list[Any]:
    """Send a batch, and those of its items again that Redis did not carry out; return the result or error of each."""
    deadline = retries.begin(time.monotonic())
    found: list[Any] = retries.run(lambda: send(items), all(map(_has_key, items)))
    while again := [number for number, result in enumerate(found) if _may_repeat(items[number], result)]:
        if not deadline.pause(found[again[0]].node):
            break
        attempt = current.set(Attempt())
        try:
            results = send([items[number] for number in again])
        except EngineUnavailable as error:
            results = [error] * len(again)
        finally:
            current.reset(attempt)
        for number, result in zip(again, results, strict=True):
            if found[number].retry_safe or not isinstance(result, EngineUnavailable):
                found[number] = result  # else the outcome of an attempt before is unknown, and the error says so
    return found


def _may_repeat(item: Any, result: Any) -> bool:
    if not isinstance(result, EngineUnavailable) or result.code not in REPEATED:
        return False
    return result.retry_safe or _has_key(item)


def _has_key(item: Any) -> bool:
    """Tell whether an item of a batch, a record or its fields by name, has an idempotency key."""
    return (item.get("key") if isinstance(item, Mapping) else getattr(item, "key", None)) is not None


MOVED, MOVING = "MOVED", "MOVING"
RETRY_TIME = 5.0  # seconds for which a call waits for an instance between two partitions, usually a few ms
FIRST_HOP_PAUSE, LONGEST_HOP_PAUSE = 0.002, 0.05  # seconds
HELP_AFTER = 0.1  # seconds after which a caller brings the instance into force itself: the command may have been killed
MAX_HOPS = 8  # from a partition of an earlier number over the one before to the new one, and a few to spare


class RelocatedReply(list[Any]):
    """A reply that another partition gave than the one that was asked: ``root``."""

    root = ""


def is_elsewhere(reply: Any) -> bool:
    """Tell whether a reply says that the instance is in another partition, or between two."""
    return type(reply) is list and bool(reply) and reply[0] in (MOVED, MOVING)


def follow(
    send: Callable[[str], list[Any]], arrive: Callable[[str], None], root: str, reply: Sequence[Any]
) -> list[Any]:
    """Ask where the instance is and return the reply from there, or the last one that sends elsewhere.

    ``send`` makes the same call at another root. ``arrive`` brings the instance into force there: an old partition that
    sends on has seen it depart, so that is safe.
    """
    began, pause, hops, helped = time.monotonic(), FIRST_HOP_PAUSE, 0, False
    while is_elsewhere(reply):
        if reply[0] == MOVED:
            root, hops = str(reply[1]), hops + 1
            if hops > MAX_HOPS:
                break
        elif time.monotonic() > began + RETRY_TIME:
            break
        elif hops and not helped and time.monotonic() > began + HELP_AFTER:
            helped = True
            arrive(root)
        else:
            waiting.pause(pause)
            pause = min(2 * pause, LONGEST_HOP_PAUSE)
        reply = send(root)
    found = RelocatedReply(reply)
    found.root = root
    return found


def get_root(reply: Any, root: str) -> str:
    """Return the root that answered."""
    return reply.root if isinstance(reply, RelocatedReply) else root
