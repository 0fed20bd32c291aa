"""A clock that a test sets: fires what is due, and works as workers do, at that time."""

from __future__ import annotations

from collections.abc import Callable

from machines.engine import Engine, Job
from machines.schedules import SCHEDULES, Schedules
from machines.schedules.execution import work

NOON = 1_800_000_000_000 - 1_800_000_000_000 % 86_400_000 + 43_200_000  # 15 January 2027, 12:00 UTC, ms
MINUTE, HOUR, DAY = 60_000, 3_600_000, 86_400_000


class Clock:
    """``now``: ms. Each call of ``run_until`` goes from one due time to the next, so that a year takes seconds."""

    def __init__(self, engine: Engine, now: int = NOON) -> None:
        self.engine = engine
        self.schedules = Schedules(engine)
        self.now = now

    def put(self, **given) -> str:
        self.schedules.put({"name": "nightly", "what": WHAT} | given, now=self.now)
        return given.get("name", "nightly")

    def tick(self) -> None:
        self.engine.tick(SCHEDULES, now=self.now)

    def take(self) -> list[Job]:
        return list(self.engine.take(SCHEDULES, "work", "w1", count=10, now=self.now))

    def work(self) -> None:
        """Fire what is due now, and do all work there is."""
        for _ in range(1000):
            self.tick()
            jobs = self.take()
            if not jobs:
                return
            for job in jobs:
                self.engine.complete(job, work(self.engine, job.instance, now=self.now), now=self.now)
        raise AssertionError("the work does not end")

    def next_due(self) -> int | None:
        """Return ms of the next timer of any schedule."""
        found = [timer.due for one in self.engine.find(SCHEDULES, limit=100).instances for timer in one.timers]
        return min(found, default=None)

    def run_until(self, end: int, after: Callable[[], None] = lambda: None) -> None:
        self.work()
        while (due := self.next_due()) is not None and due <= end:
            self.now = max(self.now, due)
            self.work()
            after()
        self.now = end


WHAT = {"do": "enqueue", "machine": "report", "src": "make_report"}
