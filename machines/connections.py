"""The engine of this process."""

from __future__ import annotations

import threading
from functools import lru_cache

from django.conf import settings

from machines.engine import Engine
from machines.patterns import Throttle

_making = threading.Lock()
_made: tuple[tuple[str, str], Engine] | None = None


def get_engine() -> Engine:
    """One engine for each process, on ``REDIS_URL`` and ``SIGNALBOX_PREFIX``; other settings give another one.

    Makes no connection by itself, so it succeeds when Redis is down. Safe to call from any thread.
    """
    global _made
    wanted = (settings.REDIS_URL, settings.SIGNALBOX_PREFIX)
    held = _made
    if held is not None and held[0] == wanted:
        return held[1]
    with _making:
        if _made is None or _made[0] != wanted:
            _made = (wanted, Engine.from_url(wanted[0], prefix=wanted[1]))
        return _made[1]


def get_throttle() -> Throttle:
    """Limits that all processes of this installation share, on the connections of its engine."""
    return _throttle(get_engine())


@lru_cache(maxsize=4)
def _throttle(engine: Engine) -> Throttle:
    return Throttle(engine.client, engine.keys.prefix)
