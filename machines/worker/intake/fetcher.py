"""Takes jobs from queues, and waits when there are none."""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable

from machines.engine import Engine, errors
from machines.worker.execution.progress_reporter import ProgressReporter
from machines.worker.job import Job

from .queue_waiter import QueueWaiter
from .served_queues import ServedQueue, ServedQueues

log = logging.getLogger(__name__)

BUSY_RESCAN = 0.1  # seconds: while jobs run no bell is waited for, so that the other queues are looked into
BUSY_HOLD = 0.5  # seconds a queue that is paused or full is left alone while jobs run
REFRESH = 10.0  # seconds between two looks at what is published, should the news of it have been missed
NAMES = 30.0  # seconds between two looks for queues that no definition feeds
DEAF = 1.0  # seconds the news is left to the other workers after it was heard here
MOST = 100  # jobs of one call: a few milliseconds in which the server does nothing else


class Fetcher:
    """Keeps a list of the queues that may hold work: one leaves it when a take finds less than asked for,
    and comes back when its bell rings. So an idle worker asks no queue anything.
    """

    def __init__(
        self,
        engine: Engine,
        served_queues: ServedQueues,
        queue_waiter: QueueWaiter,
        worker: str,
        *,
        rescan: float,
        progress_reporter: ProgressReporter | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._engine = engine
        self._served_queues = served_queues
        self._queue_waiter = queue_waiter
        self._worker = worker
        self._rescan = rescan
        self._progress = progress_reporter
        self._clock = clock
        self._promising: dict[ServedQueue, None] = {}  # in the order to try them
        self._later: dict[ServedQueue, float] = {}  # when the rate of a queue allows another job
        self._held: dict[ServedQueue, float] = {}  # since when a queue gives nothing: paused, full, or out of order
        self._bells: dict[str, ServedQueue] = {}
        self._bells_of: list[ServedQueue] | None = None
        self._refreshed = self._named = self._scanned = self._heard = -float("inf")
        self.unanswered = False  # a take had no answer: jobs may be leased to this worker that it does not know of

    # Taking

    def fetch(self, room: int) -> list[Job]:
        """Takes up to ``room`` jobs, the same share from each queue. One call to Redis for each queue tried.

        A queue that cannot be taken from must hold up no other: it is tried again with the next rescan.
        """
        jobs: list[Job] = []
        share = -(-room // max(len(self._promising), 1))
        for route in list(self._promising):
            if (asked := min(share, room - len(jobs), MOST)) <= 0:
                break
            try:
                jobs += self._take(route, asked)
            except errors.EngineUnavailable:
                self.unanswered = True
                if not jobs:
                    raise
                break  # what was taken so far is held, and has to be worked on
            except errors.SignalboxError as error:
                log.error("no jobs can be taken from %s: %s", route, error)
                del self._promising[route]
                self._held[route] = self._clock()
        return jobs

    def _take(self, route: ServedQueue, asked: int) -> list[Job]:
        began = time.monotonic()
        taken = self._engine.take(route.machine, route.queue, self._worker, count=asked)
        del self._promising[route]
        if len(taken) == asked:
            self._promising[route] = None  # there may be more: to the end of the line, the others come first
        elif taken.hint == "rate":
            self._later[route] = self._clock() + max(taken.wait or 0, 1) / 1000
        elif taken.hint:
            self._held[route] = self._clock()
        return [Job(job, began=began, progress_reporter=self._progress) for job in taken]

    # Waiting

    def wait(self) -> None:
        """Waits for a bell, the block time at most, and notes the queue that rang."""
        if self.look():
            return
        now = self._clock()
        soonest = min(self._later.values(), default=None)
        rung = self._queue_waiter.wait(self._ears(now), None if soonest is None else soonest - now)
        if rung is None:
            return
        if rung in self._bells:
            self._rang(self._bells[rung])
        else:
            self._heard, self._refreshed = self._clock(), -float("inf")

    def _rang(self, route: ServedQueue) -> None:
        self._held.pop(route, None)
        self._later.pop(route, None)
        self._promising[route] = None

    def _ears(self, now: float) -> list[str]:
        if self._bells_of is not self._served_queues.heard:
            self._bells = {bell: route for route in self._served_queues.heard for bell in self._bells_at(route)}
            self._bells_of = self._served_queues.heard
        news = [self._engine.keys.news] if now - self._heard >= DEAF else []
        return [*self._bells, *news]

    def _bells_at(self, route: ServedQueue) -> list[str]:
        with contextlib.suppress(errors.LookupFailed):  # gone since the routes were made
            return self._engine.bells(route.machine, route.queue)
        return []

    # Looking

    def look(self) -> bool:
        """Now and then notes what was published, and queues that hold work; says whether there are any to try."""
        now = self._clock()
        if now - self._refreshed >= REFRESH:
            names = now - self._named >= NAMES
            changed = self._served_queues.refresh(names=names or self._heard >= self._refreshed)
            self._refreshed = now  # not before: a look that failed is no look, and the next turn has to ask again
            self._named = now if names else self._named
            if changed:
                self._scanned = -float("inf")
        self._release(now)
        if now - self._scanned >= self._patience():
            self._scan(now)
        return bool(self._promising)

    def _patience(self) -> float:
        if not self._queue_waiter.hears:
            return 0.0
        return min(BUSY_RESCAN, self._rescan) if self._promising else self._rescan

    def _release(self, now: float) -> None:
        """Queues that were held back may be tried again."""
        if self._later:
            for route in [route for route, due in self._later.items() if due <= now]:
                del self._later[route]
                self._promising[route] = None
        if self._held:
            patience = BUSY_HOLD if self._promising else self._rescan
            for route in [route for route, since in self._held.items() if now - since >= patience]:
                del self._held[route]

    def _scan(self, now: float) -> None:
        """Which queues hold work, but for those that are held back: one command, in place of a take from each."""
        quiet = [
            r for r in self._served_queues.heard if not (r in self._promising or r in self._held or r in self._later)
        ]
        found = [ServedQueue(*queue) for queue in self._engine.ready(quiet)] if quiet else []
        self._scanned = now
        busy = [route for route in self._promising if route in self._served_queues.known]
        self._promising = dict.fromkeys(found + busy)  # the quiet ones first: they have waited for their turn

    def rescan(self) -> None:
        """Every queue may hold work: at the start, after an outage, and should a ring have been lost."""
        self._scanned = -float("inf")
        self._held.clear()
        self._later.clear()

    def pass_on(self) -> None:
        """This worker takes no more: what it was told of is for others."""
        told, self._promising = list(self._promising), {}
        with contextlib.suppress(errors.SignalboxError):
            self._queue_waiter.pass_on([bell for route in told for bell in self._bells_at(route)[:1]])
