"""A limit that all processes share: so many at once, so many in a time. Needs Redis and no Django.

    throttle = Throttle(engine.client, engine.keys.prefix)
    verdict = throttle.take("api", token_id, limit=600, per=60)
    if not verdict.allowed:
        ...  # come again after verdict.retry_after seconds

``take`` counts by the generic cell rate algorithm: ``limit`` may come at once, then one each ``per / limit`` seconds,
so that no window's edge lets twice as many through. ``count`` is a fixed window that the first one opens: ``limit``
until it ends. Either is one call inside Redis, which reads the server's clock and writes count and expiry together:
callers that race never get more than the limit, and what is refused costs nothing and prolongs nothing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from machines.engine.client import Client
from machines.engine.errors import BadInput
from machines.engine.keys import PREFIX
from machines.engine.throttling import Limits

MAX_LIMIT = 1_000_000
MAX_PER = 30 * 86_400  # seconds
MAX_KEY = 512  # characters: a user name, an address, a digest
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,63}")


@dataclass(frozen=True, slots=True)
class Verdict:
    """What one call was told. Times are in seconds from now.

    ``remaining``: what may still come at once. ``reset_after``: when all of the limit is there again.
    ``retry_after``: when this very call would be allowed, 0 when it was.
    """

    allowed: bool
    remaining: int
    reset_after: float
    retry_after: float


class Throttle:
    """Limits by name and key on one Redis. Safe to share between threads."""

    def __init__(self, redis: Client, prefix: str = PREFIX) -> None:
        self._limits = Limits(redis, prefix)

    def take(self, name: str, key: str, *, limit: int, per: float, cost: int = 1, now: int | None = None) -> Verdict:
        """Take ``cost`` of what ``limit`` in ``per`` seconds leaves ``key`` under the limit called ``name``.

        ``now``: ms since the epoch, in place of the server's clock. Raises BadInput for what makes no sense, before
        anything is sent, and EngineUnavailable when Redis cannot be used: the caller decides what that means.
        """
        return self._ask("pace", name, key, limit, per, cost, now)

    def count(self, name: str, key: str, *, limit: int, per: float, cost: int = 1, now: int | None = None) -> Verdict:
        """The same with a fixed window of ``per`` seconds, which the first call opens."""
        return self._ask("window", name, key, limit, per, cost, now)

    def forget(self, name: str, key: str) -> None:
        """All of both limits is there again."""
        _check(name, key, 1, 1, 1, None)
        self._limits.forget(name, key)

    def _ask(self, kind: str, name: str, key: str, limit: int, per: float, cost: int, now: int | None) -> Verdict:
        _check(name, key, limit, per, cost, now)
        allowed, remaining, reset, retry = self._limits.ask(kind, name, key, limit, round(per * 1000), cost, now)
        return Verdict(allowed, remaining, reset / 1000, retry / 1000)


def _check(name: Any, key: Any, limit: Any, per: Any, cost: Any, now: Any) -> None:
    """BadInput for the first argument that does not fit. A boolean is no number."""
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise BadInput(f"a limit's name is 1 to 64 letters, digits, '_', '.' or '-', not {name!r:.80}", code="SB401")
    if not isinstance(key, str) or not 0 < len(key) <= MAX_KEY:
        raise BadInput(f"what is limited has a key of 1 to {MAX_KEY} characters, not {key!r:.80}", code="SB401")
    if not _whole(limit) or not 1 <= limit <= MAX_LIMIT:
        raise BadInput(f"limit is a whole number from 1 to {MAX_LIMIT}, not {limit!r:.80}", code="SB402")
    if isinstance(per, bool) or not isinstance(per, int | float) or not 0.001 <= per <= MAX_PER:
        raise BadInput(f"per is in seconds, from 0.001 to {MAX_PER}, not {per!r:.80}", code="SB402")
    if not _whole(cost) or not 1 <= cost <= limit:
        raise BadInput(f"cost is a whole number from 1 to the limit, which is {limit}, not {cost!r:.80}", code="SB402")
    if now is not None and (not _whole(now) or not 0 <= now < 10**14):
        raise BadInput(f"now is in ms since the epoch, not {now!r:.80}", code="SB402")


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
