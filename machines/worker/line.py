"""The loop that takes jobs. It decides how long to wait, and nothing else."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from machines.engine import Engine, errors
from machines.worker.backoff import Backoff
from machines.worker.crew import Crew
from machines.worker.fetcher import Fetcher
from machines.worker.hand import Hand
from machines.worker.options import Options
from machines.worker.routes import Routes

log = logging.getLogger(__name__)

ROOM = 0.5  # seconds a full hand is waited on before looking whether to stop


class Line:
    """Fetches as much as there is room for, gives it to the crew, and waits for more."""

    def __init__(
        self,
        engine: Engine,
        fetcher: Fetcher,
        routes: Routes,
        hand: Hand,
        crew: Crew,
        options: Options,
        *,
        on_jobs: Callable[[], None],
    ) -> None:
        self._engine = engine
        self._fetcher = fetcher
        self._routes = routes
        self._hand = hand
        self._crew = crew
        self._options = options
        self._on_jobs = on_jobs
        self._stopped = threading.Event()
        self._backoff = Backoff(options.backoff)
        self._away = False

    def stop(self) -> None:
        self._stopped.set()

    def run(self) -> None:
        while not self._stopped.is_set():
            try:
                ended = self._turn()
            except errors.EngineUnavailable as error:
                self._outage(error)
                continue
            except Exception:
                log.exception("taking jobs failed; it goes on")
                self._stopped.wait(self._backoff.next())
                continue
            self._back()
            if ended:
                return

    def _turn(self) -> bool:
        """One round; says whether the work this worker was started for is done."""
        room = self._hand.wait_free(ROOM)
        if not room or self._stopped.is_set():
            return False
        self._fetcher.look()
        jobs = self._fetcher.fetch(room)
        if jobs:
            self._hand.pick_up(jobs)
            self._on_jobs()
            for job in jobs:
                self._crew.give(job)
        if self._options.once:
            return True
        if jobs:
            return False
        if self._options.drain and self._drained():
            return True
        self._fetcher.wait()
        return False

    def _drained(self) -> bool:
        """Nothing in hand, and nothing ready, leased or delayed on the queues served."""
        machines = {route.machine for route in self._routes.served}
        return not len(self._hand) and not any(map(self._open, machines))

    def _open(self, machine: str) -> int:
        depths = self._engine.queues(machine)
        served = [route.queue for route in self._routes.served if route.machine == machine]
        return sum(depths[q][place] for q in served if q in depths for place in ("ready", "leased", "delayed"))

    def _outage(self, error: errors.EngineUnavailable) -> None:
        if not self._away:
            log.warning("Redis is away: %s; trying on", error)
        self._away = True
        self._fetcher.rescan()
        self._stopped.wait(self._backoff.next())

    def _back(self) -> None:
        if self._away:
            log.warning("Redis is back")
            self._fetcher.rescan()
        self._away = False
        self._backoff.reset()
