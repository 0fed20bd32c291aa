"""Takes back what dead workers held, and releases what is due."""

from __future__ import annotations

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
        moved, failed = 0, None
        for machine in self._machines():
            try:
                moved += self._engine.sweep(machine)
            except errors.LookupFailed:
                continue  # gone since the list was made
            except errors.SignalboxError as error:
                failed = error  # one machine that cannot be swept must not keep the others from it
        if failed is not None:
            raise failed
        return moved > 0

    def pause(self) -> float:
        return self._pause
