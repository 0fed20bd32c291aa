"""The engine of this process."""

from __future__ import annotations

import threading

from django.conf import settings

from machines.engine import Engine

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
