"""Processes due work: timers, expired leases, delayed jobs, undelivered messages; workers share the partitions."""

import logging
import random
import time
from bisect import bisect_right
from collections.abc import Callable, Iterable

from machines.engine import Engine, errors
from machines.engine.jobs.wakeups import Bell, Shares

from ..intake.bell_listener import BellListener, BellWaiter
from .clock_monitor import ClockMonitor

log = logging.getLogger(__name__)

Partitions = dict[str, tuple[str, int]]  # root -> machine, number
MOST = 20  # partitions of one pass: three commands for each


class PartitionShares:
    """The partitions of all machines, and those that are this worker's.

    A worker that dies is out of the division seven seconds later, and others have its partitions. For that moment, and
    while workers come and go, two may look after one partition, or none: so what is done there must be safe to do
    twice, and each worker slowly looks at what others should have done.
    """

    EVERY = 2.5  # seconds between two signs of life
    RELIST = 10.0  # seconds between two looks whether a machine has grown to more partitions

    def __init__(
        self,
        engine: Engine,
        machines: Callable[[], Iterable[str]] | None = None,
        worker: str = "",
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Share partitions. ``worker``: its id; "" for one that has all partitions and joins no division."""
        self._engine = engine
        self._machines = machines or engine.machines
        self._worker = worker
        self._clock = clock
        self._shares = Shares(worker)
        self._joined = -float("inf")
        self._listed = -float("inf")
        self._names: list[str] | None = None
        self.all: Partitions = {}
        self.own: Partitions = {}

    def refresh(self) -> bool:
        """Give a sign of life when it is time, and see which machines there are; return whether the partitions changed.
        Raises EngineUnavailable."""
        changed = False
        if self._worker and self._clock() - self._joined >= self.EVERY:
            changed = self._shares.update(self._engine.wakeups.join(self._worker))
            self._joined = self._clock()
        names = sorted(self._machines())
        if names != self._names or self._clock() - self._listed >= self.RELIST:
            found = self._engine.wakeups.roots(names)
            changed = changed or found != self.all
            self.all, self._names, self._listed = found, names, self._clock()
        if changed:
            self.own = {root: where for root, where in self.all.items() if self._shares.owns(root)}
        return changed

    def pause(self) -> float:
        """Return seconds until the next sign of life is due."""
        return max(0.0, self._joined + self.EVERY - self._clock()) if self._worker else self.EVERY

    def leave(self) -> None:
        """Let others have the partitions at once."""
        if self._worker:
            self._engine.wakeups.leave(self._worker)


class TimerWaiter(BellWaiter):
    """Collects the due times that partitions announce. Losing one delays what is due by seconds."""

    def __init__(self, listener: BellListener | None = None) -> None:
        super().__init__()
        if listener is not None:
            listener.add(self)

    def hear(self, bell: Bell) -> None:
        if bell.due is not None:
            with self._changed:
                self._heard.dues[bell.root] = min(bell.due, self._heard.dues.get(bell.root, bell.due))
                self._changed.notify_all()

    def hear_news(self) -> None:
        """Ignore news of definitions: machines come with the next look."""


class DueWork:
    """Does what is due in this worker's partitions, of all machines, also those it does not serve. The engine sees to
    it that each timer fires once and each message is applied once, also where two workers do this for one partition.

    A partition is asked when something is due there, as it announced itself. Every ``pause`` seconds the server is
    asked, from its memory and in few calls, for what was not heard; every third time also for what others have left
    overdue.
    """

    FAULTY = 1.0  # seconds: where something went wrong, the next try comes soon
    HORIZON = 2  # times the pause: how far ahead due times are remembered here
    LATE = 2_000  # ms after which what is another worker's to do is done here
    ALL_EVERY = 3  # looks at the server's memory, of which one is at all partitions

    def __init__(
        self,
        engine: Engine,
        machines: Callable[[], Iterable[str]] | None = None,
        *,
        pause: float = 5.0,
        shares: PartitionShares | None = None,
        waiter: TimerWaiter | None = None,
        monitor: ClockMonitor | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Take partitions. ``monitor``: the clocks of the servers, which hears of each look. What is due by a clock
        that was set waits until that is noticed."""
        self._engine = engine
        self._shares = shares or PartitionShares(engine, machines)
        self._waiter = waiter
        self._monitor = monitor or ClockMonitor(engine, clock=clock)
        self._pause = pause
        self._clock = clock
        self._horizon = round(pause * 1000 * self.HORIZON)
        self._dues: dict[str, int] = {}  # root -> ms of the server's clock
        self._offset = 0.0  # the server's clock less this process's, ms
        self._looks = 0
        self._look_at = -float("inf")
        self._wait = pause
        self._doubts = True
        self._faults: frozenset[str] = frozenset()
        self._troubled: set[str] = set()  # partitions that had one of these

    def run_once(self) -> bool:
        """Make one pass; tell whether anything moved. What is wrong with one partition keeps no other waiting."""
        doubts, self._doubts = self._doubts, True
        changed = self._shares.refresh()
        doubts = self._collect() or doubts
        looked = doubts or changed or self._waiter is None or self._clock() >= self._look_at
        if looked:
            self._look()
        ready = list(self._shares.own) if doubts else self._take_ready()
        moved, was_set = self._drive(ready, doubts) if ready else (0, False)
        self._doubts = was_set
        if looked:
            self._look_at = self._clock() + self._pause
        self._plan(looked)
        return moved > 0 or was_set

    def pause(self) -> float:
        return self._wait

    def doubt(self) -> None:
        """Trust no server's memory in the next pass: it may be another server now, or one that was away meanwhile."""
        self._doubts = True

    def _collect(self) -> bool:
        """Take over the due times that partitions announced; return whether some may have been missed."""
        if self._waiter is None:
            return False
        heard = self._waiter.collect()
        for root, due in heard.dues.items():
            if root in self._shares.own:
                self._dues[root] = min(due, self._dues.get(root, due))
        return heard.gap

    def _look(self) -> None:
        """Ask the server's memory."""
        own = self._shares.own
        looked_at = self._shares.all if self._looks % self.ALL_EVERY == 0 else own
        self._looks += 1
        clocks: dict[frozenset[str], int] = {}
        asked = self._monitor.now()
        now, found = self._engine.wakeups.memory.find_due(looked_at, self._horizon, clocks)
        self._monitor.observe(clocks, asked)
        self._set_clock(now)
        self._dues = {root: due for root, due in self._dues.items() if root in own}
        for root, due in found.items():
            if root in own:
                self._dues[root] = now if due is None else due
            elif due is not None and due <= now - self.LATE:
                self._dues[root] = due

    def _take_ready(self) -> list[str]:
        now = self._read_clock()
        ready = [root for root, due in self._dues.items() if due <= now]
        for root in ready:
            del self._dues[root]
        return ready

    def _drive(self, roots: list[str], look: bool) -> tuple[int, bool]:
        """Do what is due; return how much moved, and whether a clock was later than it can be, so that nothing did."""
        clock = self._monitor.bounds()
        done = self._engine.drive_roots(roots, look=look, clock=clock)
        self._set_clock(done.now)
        for root in roots:
            self._dues.pop(root, None)
        self._dues |= {root: due for root, due in done.dues.items() if due <= done.now + self._horizon}
        soon = round(self._read_clock() + self.FAULTY * 1000)
        for root in done.troubled:
            self._dues[root] = min(soon, self._dues.get(root, soon))
        self._troubled = (self._troubled - set(roots)) | set(done.troubled)
        self._log(done.faults)
        return done.moved, clock.latest is not None and done.now > clock.latest

    def _plan(self, looked: bool) -> None:
        """Compute the wait: to what is due next, the next look at the latest."""
        wait = self._pause if looked else max(0.0, self._look_at - self._clock())
        if self._dues:
            wait = min(wait, max(0.0, (min(self._dues.values()) - self._read_clock()) / 1000))
        self._wait = min(wait, self.FAULTY) if self._faults else wait

    def _set_clock(self, now: int) -> None:
        if now:
            self._offset = now - self._clock() * 1000

    def _read_clock(self) -> float:
        return self._clock() * 1000 + self._offset

    def _log(self, faults: Iterable[errors.SignalboxError]) -> None:
        """Log what is new: a pass comes several times a second, and not each meets the partitions in trouble."""
        found = frozenset(str(fault) for fault in faults)
        for fault in sorted(found - self._faults):
            log.error("not all that is due can be worked off: %s", fault)
        if self._faults and not self._troubled and not found:
            log.warning("all that is due can be worked off again")
            self._faults = found
        elif found:
            self._faults = found


class DueWorkLoop:
    """Ticks, and waits on the bells where there is nothing to do."""

    def __init__(self, due_work: DueWork, timer_waiter: TimerWaiter, shares: PartitionShares) -> None:
        self._due_work = due_work
        self._timer_waiter = timer_waiter
        self._shares = shares

    def run_once(self) -> bool:
        """Make a pass, and wait after it: the next one may come at once."""
        try:
            found = self._due_work.run_once()
        except errors.EngineUnavailable:
            self._due_work.doubt()
            raise
        if not found:
            self._timer_waiter.wait(min(self._due_work.pause(), self._shares.pause()))
        return True

    def pause(self) -> float:
        return 0.0


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

    def run_once(self) -> bool:
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
