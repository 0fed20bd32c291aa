"""Takes jobs off the queues, and waits when there are none."""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable

from machines.engine import Engine, errors
from machines.worker.doorbell import Doorbell
from machines.worker.job import Job
from machines.worker.routes import Route, Routes

log = logging.getLogger(__name__)

BUSY_RESCAN = (
    0.5  # seconds: with work in hand nobody listens for bells, so that the other queues are asked now and then
)
REFRESH = 1.0  # seconds between two looks at what is published: a new machine is picked up in that, plus the block time


class Fetcher:
    """Keeps a list of the queues that may hold work: one leaves it when a take finds less than asked for,
    and comes back when its bell rings. So an idle worker asks no queue anything.
    """

    def __init__(
        self,
        engine: Engine,
        routes: Routes,
        doorbell: Doorbell,
        worker: str,
        *,
        rescan: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._engine = engine
        self._routes = routes
        self._doorbell = doorbell
        self._worker = worker
        self._rescan = rescan
        self._clock = clock
        self._promising: dict[Route, None] = {}  # in the order to try them
        self._refreshed = self._scanned = -float("inf")

    def fetch(self, room: int) -> list[Job]:
        """Takes up to ``room`` jobs, queue by queue in turn. One call to Redis for each queue tried.

        A queue that cannot be taken from must hold up no other: it is tried again with the next rescan.
        """
        jobs: list[Job] = []
        for route in list(self._promising):
            if len(jobs) >= room:
                break
            try:
                jobs += self._take(route, room - len(jobs))
            except errors.EngineUnavailable:
                if not jobs:
                    raise
                break  # what was taken so far is held, and has to be worked on
            except errors.SignalboxError as error:
                log.error("no jobs can be taken from %s: %s", route, error)
                del self._promising[route]
        return jobs

    def _take(self, route: Route, room: int) -> list[Job]:
        taken = self._engine.take(route.machine, route.queue, self._worker, count=room)
        del self._promising[route]
        if len(taken) == room:
            self._promising[route] = None  # there may be more: to the end of the line, the others come first
        return [Job(job) for job in taken]

    def wait(self) -> None:
        """Waits for a bell, the block time at most, and notes the queue that rang."""
        if self.look():
            return
        bells = {bell: route for route in self._routes.served for bell in self._bells(route)}
        rung = self._doorbell.wait(list(bells))
        if not self._doorbell.hears:
            self.rescan()
        if rung in bells:
            self._promising[bells[rung]] = None

    def look(self) -> bool:
        """Now and then notes what was published, and all queues; says whether there are any to try."""
        now = self._clock()
        if now - self._refreshed >= REFRESH:
            changed = self._routes.refresh()
            self._refreshed = now  # not before: a look that failed is no look, and the next turn has to ask again
            if changed:
                self.rescan()
        if now - self._scanned >= (BUSY_RESCAN if self._promising else self._rescan):
            self.rescan()
        return bool(self._promising)

    def rescan(self) -> None:
        """Every queue may hold work: at the start, after an outage, and should a ring have been lost."""
        self._scanned = self._clock()
        quiet = [route for route in self._routes.served if route not in self._promising]
        busy = [route for route in self._promising if route in self._routes.served]
        self._promising = dict.fromkeys(quiet + busy)  # the quiet ones first: they have waited for their turn

    def _bells(self, route: Route) -> list[str]:
        with contextlib.suppress(errors.LookupFailed):  # gone since the routes were made
            return self._engine.bells(route.machine, route.queue)
        return []
