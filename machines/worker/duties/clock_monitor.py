"""Notices that a server's clock was set, by this process's monotonic clock."""

import logging
import time
from collections.abc import Callable, Mapping

from machines.engine import Engine
from machines.engine.jobs.clock_jump import ClockBounds, ClockJump

log = logging.getLogger(__name__)

LEAST = 3_000  # ms by which a clock has to be off: more than a failover to a server with a sensible clock makes
QUICK = 1.0  # seconds that an answer may take to tell by how much two clocks differ
DRIFT = 0.001  # of the time between two looks, for clocks that are slewed: NTP does so by half of that
STEADY = 60.0  # seconds between two looks at whether other workers have noticed a jump


class ClockMonitor:
    """Keeps for each partition by how much its server's clock differs from this process's. The partition counts, not
    the server: its clock jumps as well when another server takes over.

    This process may have stood still itself (a paused virtual machine): that looks the same, and costs leases no more
    than a longer wait.
    """

    def __init__(
        self,
        engine: Engine,
        worker: str = "",
        *,
        on_jump: Callable[[], object] = lambda: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Monitor clocks. ``on_jump`` is called after a jump."""
        self._engine = engine
        self._worker = worker
        self._on_jump = on_jump
        self._clock = clock
        self._offsets: dict[frozenset[str], float] = {}  # partitions -> ms of their server's clock less this process's
        self._most: float | None = None  # of these
        self._seen = 0.0  # when they were taken
        self._since: int | None = None
        self._read = -float("inf")
        self.jumps = 0  # how many were noticed here

    def now(self) -> float:
        """Return seconds of this process's clock."""
        return self._clock()

    def bounds(self) -> ClockBounds:
        """Return what is known of the servers' clocks at this moment."""
        if self._most is None:
            return ClockBounds(None, self._since)
        now = self._clock()
        slack = LEAST + DRIFT * (now - self._seen) * 1000
        return ClockBounds(round(now * 1000 + self._most + slack), self._since)

    def observe(self, clocks: Mapping[frozenset[str], int], asked: float) -> bool:
        """Compare clocks, partitions of a server -> ms, that were asked for at ``asked``; return whether one was set
        since the last time. Raises EngineUnavailable."""
        answered = self._clock()
        self._read_others()
        slack = LEAST + DRIFT * (answered - self._seen) * 1000
        found: dict[str, tuple[int, int]] = {}  # server -> what its clock should have shown, and what it showed
        for roots, shown in clocks.items():
            for held, offset in self._offsets.items():
                early, late = asked * 1000 + offset, answered * 1000 + offset
                if not early - slack <= shown <= late + slack and (both := held & roots):
                    found.setdefault(self._engine.wakeups.find_server(min(both)), (round(late), shown))
        for server, (expected, shown) in found.items():
            self._note(ClockJump(server, expected, shown, self._worker))
        if found:
            self._offsets.clear()
        if answered - asked <= QUICK:  # else nobody knows when the clock showed that
            seen = frozenset().union(*clocks)
            unseen = {rest: offset for held, offset in self._offsets.items() if (rest := held - seen)}
            self._offsets = unseen | {roots: shown - answered * 1000 for roots, shown in clocks.items()}
        self._most, self._seen = max(self._offsets.values(), default=None), answered
        if found:
            self.jumps += len(found)
            self._engine.wakeups.reread_clock()
            self._on_jump()
        return bool(found)

    def _note(self, jump: ClockJump) -> None:
        log.error(
            "the clock of the server%s jumped by %+.1f s; or this process stood still",
            f" {jump.server}" if jump.server else "",
            jump.by / 1000,
        )
        self._engine.clock_jumps.note(jump)  # not noted: the next look notices it again
        self._since = jump.shown

    def _read_others(self) -> None:
        """Take over the jumps that other workers noticed, as before this one started; forget those that are over."""
        now = self._clock()
        if now - self._read < STEADY:
            return
        jumps = self._engine.clock_jumps.read()
        shown = [jump.shown for jump in jumps]
        if self._most is not None:
            for jump in jumps:
                if now * 1000 + self._most > jump.over:
                    self._engine.clock_jumps.forget(jump.server)
                    shown.remove(jump.shown)
        self._since, self._read = max(shown, default=None), now
