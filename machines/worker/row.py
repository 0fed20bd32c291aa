"""What the workers page shows of this process."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable

from machines.engine import WorkerRow
from machines.worker.hand import Hand
from machines.worker.routes import Routes


class Row:
    """Makes the worker's row as it is now. Times are ms of wall clock: stored and shown, never compared here."""

    def __init__(
        self, id: str, routes: Routes, hand: Hand, *, version: str, clock: Callable[[], float] = time.time
    ) -> None:
        self._id = id
        self._routes = routes
        self._hand = hand
        self._version = version
        self._clock = clock
        self._started = int(clock() * 1000)

    def now(self) -> WorkerRow:
        return WorkerRow(
            id=self._id,
            host=socket.gethostname(),
            pid=os.getpid(),
            queues=[str(route) for route in self._routes.served],
            in_hand=len(self._hand),
            started=self._started,
            seen=int(self._clock() * 1000),
            version=self._version,
            note=self._note(),
        )

    def _note(self) -> str:
        """Names the handlers that queues ask for and this worker does not have."""
        missing = sorted({src for lacking in self._routes.missing.values() for src in lacking})
        return f"no handler here for {', '.join(missing)}" if missing else ""
