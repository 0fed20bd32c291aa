"""Takes back jobs with expired leases, and releases what is due: the slower check beside the due-work loop."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable

from machines.engine import Engine, errors


class LeaseRecovery:
    """Every worker sweeps now and then, and all machines, also those it does not serve. The ticker does the same as
    soon as it is due; a sweep reads what is there, whatever the server remembers of it.
    """

    def __init__(
        self, engine: Engine, machines: Callable[[], Iterable[str]] | None = None, *, pause: float = 15.0
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
        """Not the same each time: workers that were started together need not sweep together."""
        return self._pause * random.uniform(0.8, 1.2)  # noqa: S311  spreading load, not a secret
