"""A clock that a test sets: fires what is due, and works as workers do, at that time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import repeat

from machines.engine import Engine, Job
from machines.schedules import SCHEDULES, Schedules
from machines.schedules.execution import LOOK, work

NOON = 1_800_000_000_000 - 1_800_000_000_000 % 86_400_000 + 43_200_000  # 15 January 2027, 12:00 UTC, ms
SECOND, MINUTE, HOUR, DAY = 1000, 60_000, 3_600_000, 86_400_000


class Killed(BaseException):
    """A worker dies; nothing of it catches this."""


class Clock:
    """``now``: ms. Each call of ``run_until`` goes from one due time to the next, so that a year takes seconds.

    ``deaths``: how workers die, one for each job, in turn: "" for one that lives, else what was the last thing it did.
    """

    def __init__(self, engine: Engine, now: int = NOON) -> None:
        self.engine = engine
        self.schedules = Schedules(engine, lambda: self.now)
        self.now = now
        self.deaths: Iterator[str] = repeat("")
        self.died: Counter[str] = Counter()

    def put(self, **given) -> str:
        given = {"name": "nightly", "what": WHAT} | given
        self.schedules.put(given)
        return given["name"]

    def work(self) -> None:
        """Fire what is due now, and do all work there is."""
        for _ in range(1000):
            self.engine.tick(SCHEDULES, now=self.now)
            jobs = self.engine.take(SCHEDULES, "work", "w1", count=10, now=self.now)
            if not jobs:
                return
            for job in jobs:
                self.do(job, next(self.deaths))
        raise AssertionError("the work does not end")

    def do(self, job: Job, death: str) -> None:
        left = {"begin": 1, "claim": 3}.get(death, 1_000_000)

        def check() -> None:
            nonlocal left
            left -= 1
            if left == 0:
                raise Killed

        try:
            result = work(self.engine, job.instance, now=self.now, check=check)
            if death == "effect":
                raise Killed
            if result is None:
                self.engine.hand_back(job, delay=LOOK, now=self.now)
                return
            self.engine.complete(job, result, now=self.now)
        except Killed:
            self.died[death] += 1
            self.now += 31 * SECOND  # until its lease has expired

    def next_due(self) -> int | None:
        """Return ms of the next timer of any schedule, or of the next look of one that waits for an earlier run."""
        found = [timer.due for one in self.engine.find(SCHEDULES, limit=100).instances for timer in one.timers]
        delayed = self.engine.jobs(SCHEDULES, "work", place="delayed") if not found else []
        return min([*found, *(job.due for job in delayed)], default=None)

    def run_until(self, end: int) -> None:
        self.work()
        while (due := self.next_due()) is not None and due <= end:
            self.now = max(self.now, due)
            self.work()
        self.now = max(self.now, end)


WHAT = {"do": "enqueue", "machine": "report", "src": "make_report"}
