"""Rate limits that all processes share: a burst, and a rate. Needs Redis and no Django.

    throttle = Throttle(engine.client, engine.keys.prefix)
    verdict = throttle.take("api", token_id, limit=600, per=60)
    if not verdict.allowed:
        ...  # come again after verdict.retry_after seconds

``take`` counts by the generic cell rate algorithm: ``limit`` may come at once, then one each ``per / limit`` seconds.
That is a sliding window in the size of two numbers: no edge lets twice as many through, and no log of past calls is
kept. ``count`` is a fixed window that the first one opens: ``limit`` until it ends. Either is one call inside Redis,
which reads the server's clock and writes count and expiry together.

Promised: concurrent callers never get more than the limit; a refused call costs nothing and prolongs nothing. A refusal
is valid for its ``retry_after`` in any case, so this process remembers it for a moment and refuses a repeated call
without asking Redis. Not promised: that a limit survives a lost Redis, or a server's clock that is set back to before
the start of its window; or that other processes notice a ``forget`` at once: one that has just refused continues to do
so for up to ``REMEMBERED`` seconds.
"""

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from machines.engine.connection.client import Client
from machines.engine.keys import PREFIX

from . import base
from .base import Pattern

MAX_LIMIT = 1_000_000
MAX_PER = 30 * 86_400  # seconds
REMEMBERED = 1.0  # seconds that a refusal is remembered here before Redis is asked again
MOST_REMEMBERED = 10_000  # refusals; if there are more, all of them are forgotten

Rule = tuple[int, int]  # limit, ms
NOTHING = ((0, 0), 0, 0.0, 0, 0.0)


@dataclass(frozen=True, slots=True)
class Verdict:
    """The answer to one call. Times are in seconds from now.

    ``remaining``: calls still allowed at once. ``reset_after``: when the whole limit is available again.
    ``retry_after``: when this very call would be allowed, 0 when it was.
    """

    allowed: bool
    remaining: int
    reset_after: float
    retry_after: float


class Throttle(Pattern):
    """Limits by name and key on one Redis. Safe to share between threads."""

    def __init__(self, redis: Client, prefix: str = PREFIX) -> None:
        super().__init__(redis, prefix)
        self._refusals = RefusalCache()
        self._advances = AdvanceCache()

    def take(
        self, name: str, key: str, *, limit: int, per: float, cost: int = 1, ahead: int = 1, now: int | None = None
    ) -> Verdict:
        """Take ``cost`` of what ``limit`` in ``per`` seconds leaves ``key`` under the limit called ``name``.

        ``ahead``: for thousands of calls a second. If the limit has room, so many are taken in one call, and this
        process keeps the others for the next callers. Those that are not used within ``REMEMBERED`` seconds count as
        used. It applies to calls that cost 1, by the server's clock. ``now``: ms since the epoch, in place of that
        clock. Raises BadInput for invalid arguments, before anything is sent, and EngineUnavailable when Redis cannot
        be used: the caller decides what that means.
        """
        return self._ask_for("pace", self._keys.pace(*_check_name(name, key)).run, limit, per, cost, ahead, now)

    def take_all(self, limits: Sequence[tuple[str, str, int]], *, per: float) -> list[Verdict]:
        """Take one under each limit, ``(name, key, limit)``, in one round trip; a verdict for each, in order. One that
        refuses gives nothing back of the others. Raises as ``take`` does."""
        ms = base.check_seconds(per, "per", most=MAX_PER)
        sent = [
            (self._keys.pace(*_check_name(name, key)).run, (base.check_whole(limit, "limit", 1, MAX_LIMIT), ms))
            for name, key, limit in limits
        ]
        started = time.monotonic()
        known = [self._refusals.find(at, rule, started) for at, rule in sent]
        asked = [one for one, verdict in zip(sent, known, strict=True) if verdict is None]
        answers = iter(self._ask_all([("sb_throttle", at, ("pace", *rule, 1, "", 1)) for at, rule in asked]))
        found = [verdict or _verdict(next(answers)) for verdict in known]
        for (at, rule), verdict in zip(sent, found, strict=True):
            if not verdict.allowed:
                self._refusals.keep(at, rule, started, verdict)
        return found

    def count(
        self, name: str, key: str, *, limit: int, per: float, cost: int = 1, ahead: int = 1, now: int | None = None
    ) -> Verdict:
        """Take like ``take``, but in a fixed window of ``per`` seconds, which the first call opens."""
        return self._ask_for("window", self._keys.window(*_check_name(name, key)).count, limit, per, cost, ahead, now)

    def look(
        self, name: str, key: str, *, limit: int, per: float, window: bool = False, now: int | None = None
    ) -> Verdict:
        """Return what ``take`` (or ``count``, with ``window``) would find, and take nothing: ``remaining`` is
        available now, ``allowed`` tells whether one call would be."""
        base.check_whole(limit, "limit", 1, MAX_LIMIT)
        ms = base.check_seconds(per, "per", most=MAX_PER)
        _check_name(name, key)
        base.check_flag(window, "window")
        at = self._keys.window(name, key).count if window else self._keys.pace(name, key).run
        return _verdict(self._ask("sb_throttle", at, "window" if window else "pace", limit, ms, 0, base.check_now(now)))

    def forget(self, name: str, key: str) -> None:
        """Reset both limits."""
        _check_name(name, key)
        for at in (self._keys.pace(name, key).run, self._keys.window(name, key).count):
            self._caller.command("DEL", at)
            self._refusals.drop(at)
            self._advances.drop(at)

    def _ask_for(self, kind: str, at: str, limit: int, per: float, cost: int, ahead: int, now: int | None) -> Verdict:
        base.check_whole(limit, "limit", 1, MAX_LIMIT)
        ms = base.check_seconds(per, "per", most=MAX_PER)
        base.check_whole(cost, "cost", 1, limit)
        base.check_whole(ahead, "ahead", 1, limit)
        moment = base.check_now(now)
        if cost > 1 or moment:
            return _verdict(self._ask("sb_throttle", at, kind, limit, ms, cost, moment))
        rule, asked = (limit, ms), time.monotonic()
        known = self._refusals.find(at, rule, asked) or self._advances.spend(at, rule, asked)
        return known or self._ask_one(kind, at, rule, ahead)

    def _ask_one(self, kind: str, at: str, rule: Rule, ahead: int) -> Verdict:
        started = time.monotonic()  # before Redis reads its clock, so that nothing is remembered for too long
        reply = self._ask("sb_throttle", at, kind, *rule, ahead, "", 1)
        verdict = _verdict(reply)
        if not verdict.allowed:
            self._refusals.keep(at, rule, started, verdict)
        elif reply[5] > 1:
            return self._advances.keep(at, rule, started, verdict, int(reply[5]) - 1)
        return verdict


def _verdict(reply: list[Any]) -> Verdict:
    return Verdict(reply[1] == 1, int(reply[2]), int(reply[3]) / 1000, int(reply[4]) / 1000)


def _check_name(name: str, key: str) -> tuple[str, str]:
    return base.check_name(name, "a limit's name"), base.check_key(key, "the key of what is limited")


class RefusalCache:
    """Refusals of this process, for calls that take one. Only time and ``forget`` free a limit, so a refusal holds
    until then. Times are monotonic and begin before Redis was asked."""

    def __init__(self) -> None:
        self._held: dict[str, tuple[Rule, float, float, float]] = {}

    def find(self, at: str, rule: Rule, now: float) -> Verdict | None:
        found = self._held.get(at)
        if found is None or found[0] != rule or found[1] <= now:
            return None
        return Verdict(False, 0, found[2] - now, found[3] - now)

    def keep(self, at: str, rule: Rule, asked: float, verdict: Verdict) -> None:
        if len(self._held) >= MOST_REMEMBERED:
            self._held.clear()
        until = asked + min(verdict.retry_after, REMEMBERED)
        self._held[at] = (rule, until, asked + verdict.reset_after, asked + verdict.retry_after)

    def drop(self, at: str) -> None:
        self._held.pop(at, None)


class AdvanceCache:
    """Calls that this process took ahead, by key: their limit, how many are left, until when they hold, what
    remained beside them and when the whole limit is available again."""

    def __init__(self) -> None:
        self._held: dict[str, tuple[Rule, int, float, int, float]] = {}
        self._lock = threading.Lock()

    def spend(self, at: str, rule: Rule, now: float) -> Verdict | None:
        if at not in self._held:
            return None
        with self._lock:
            held, left, until, remaining, reset = self._held.pop(at, NOTHING)
            if held != rule or until <= now:
                return None
            if left > 1:
                self._held[at] = (held, left - 1, until, remaining, reset)
        return Verdict(True, remaining + left - 1, max(0.0, reset - now), 0.0)

    def keep(self, at: str, rule: Rule, asked: float, verdict: Verdict, left: int) -> Verdict:
        """Return the verdict as it is with what is left here; others of this process may have taken ahead at the same
        time."""
        until = asked + min(verdict.reset_after, REMEMBERED)
        with self._lock:
            held, more, ends, _, _ = self._held.pop(at, NOTHING)
            if held == rule and ends > asked:
                left, until = left + more, min(until, ends)
            if len(self._held) >= MOST_REMEMBERED:
                self._held.clear()
            self._held[at] = (rule, left, until, verdict.remaining, asked + verdict.reset_after)
        return Verdict(True, verdict.remaining + left, verdict.reset_after, 0.0)

    def drop(self, at: str) -> None:
        with self._lock:
            self._held.pop(at, None)
