"""Notes whether the call of an engine's method has changed anything, so that a repeat never does it twice.

A method may send several calls to Redis. Each one that writes, and may have been carried out, is noted in the attempt
that the method began (``machines.engine.retries``). Calls outside of any method are not noted.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from contextvars import ContextVar
from typing import Any

from redis import exceptions

from . import redirects
from .cluster_routing import REFUSED
from .connection_cache import UNSENT

READING = frozenset(
    "EXISTS FCALL_RO GET HGET HGETALL HKEYS HLEN HMGET INFO LLEN LRANGE PING PTTL SCAN SCARD SISMEMBER SMEMBERS TIME"  # noqa: SIM905
    " TYPE XINFO XLEN XRANGE XREAD XREVRANGE ZCARD ZCOUNT ZRANGE ZRANGEBYLEX ZSCAN ZSCORE".split()
)
"""Commands that change nothing; any other one may."""


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
        return redirects.is_elsewhere(answer)
    return isinstance(answer, (*REFUSED, exceptions.ResponseError)) or bool(getattr(answer, UNSENT, False))


@contextlib.contextmanager
def skip_notes() -> Iterator[None]:
    """Leave out calls whose repeat does no harm, as that of a range of ids."""
    token = current.set(None)
    try:
        yield
    finally:
        current.reset(token)
