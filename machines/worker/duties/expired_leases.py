"""Takes back jobs with expired leases, and releases what is due: the slower check beside the due-work loop."""

from __future__ import annotations

import random
from bisect import bisect_right
from collections.abc import Callable, Iterable

from machines.engine import Engine, errors

from .clock_monitor import ClockMonitor
from .partition_shares import PartitionShares

MOST = 20  # partitions of one pass: three commands for each


class LeaseRecovery:
    """Sweeps this worker's partitions in turn, of all machines, also those it does not serve. The ticker does the same
    as soon as it is due; a sweep reads what is there, whatever the server remembers of it.
    """

    def __init__(
        self,
        engine: Engine,
        machines: Callable[[], Iterable[str]] | None = None,
        *,
        pause: float = 15.0,
        shares: PartitionShares | None = None,
        monitor: ClockMonitor | None = None,
    ) -> None:
        """Recover leases. ``monitor``: the clocks of the servers. After a jump all partitions are swept at once."""
        self._engine = engine
        self._alone = shares is None  # nobody else refreshes them
        self._shares = shares or PartitionShares(engine, machines)
        self._monitor = monitor or ClockMonitor(engine)
        self._jumps = 0  # that were noticed before the last pass
        self._left = 0  # partitions to sweep at once
        self._pause = pause
        self._last = ""  # the root that was swept last
        self._sorted: tuple[object, list[str]] | None = None  # the shares, and their roots in order

    def once(self) -> bool:
        """Make one pass over some partitions: expired leases are taken back and due retries released. Says whether
        there were any, or further partitions are to be swept at once."""
        if self._alone:
            self._shares.refresh()
        if self._monitor.jumps != self._jumps:
            self._jumps, self._left = self._monitor.jumps, len(self._shares.own)
        moved, failed, chosen = 0, None, self._choose()
        self._left = max(0, self._left - len(chosen))
        for machine, number in chosen:
            try:
                moved += self._engine.sweep(machine, partitions=[number], clock=self._monitor.bounds())
            except errors.LookupFailed:
                continue  # gone since the list was made
            except errors.SignalboxError as error:
                failed = error  # one partition that cannot be swept must not keep the others from it
        if failed is not None:
            raise failed
        return moved > 0 or self._left > 0

    def _choose(self) -> list[tuple[str, int]]:
        """Return the next partitions after those of the last pass."""
        own = self._shares.own
        if self._sorted is None or self._sorted[0] is not own:
            self._sorted = own, sorted(own)
        roots = self._sorted[1]
        first = bisect_right(roots, self._last)
        chosen = [*roots[first : first + MOST], *roots[:first]][:MOST]
        self._last = chosen[-1] if chosen else ""
        return [own[root] for root in chosen]

    def pause(self) -> float:
        """Vary the pause: workers that were started together need not sweep together."""
        return self._pause * random.uniform(0.8, 1.2)  # noqa: S311  spreading load, not a secret
