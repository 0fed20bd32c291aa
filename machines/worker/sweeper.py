"""Takes back what dead workers held, and releases what is due."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable

from machines.engine import Engine, errors


class Sweeper:
    """Every worker sweeps all the time, and all machines, also those it does not serve: the one
    that should may be the one that died.
    """

    def __init__(
        self, engine: Engine, machines: Callable[[], Iterable[str]] | None = None, *, pause: float = 1.0
    ) -> None:
        self._engine = engine
        self._machines = machines or engine.machines
        self._pause = pause

    def once(self) -> bool:
        """One pass: expired leases are taken back and due retries released. Says whether there were any."""
        return sum(map(self._sweep, self._machines())) > 0

    def _sweep(self, machine: str) -> int:
        with contextlib.suppress(errors.LookupFailed):  # gone since the list was made
            return self._engine.tick(machine)
        return 0

    def pause(self) -> float:
        return self._pause
