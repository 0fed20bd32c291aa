"""The loop that takes jobs. It decides how long to wait."""

import logging
import threading
import time
from collections.abc import Callable, Iterable, Sequence

from machines.engine import Engine, errors
from machines.engine import Job as TakenJob
from machines.worker.execution.executor import Executor
from machines.worker.execution.in_flight import InFlightJobs
from machines.worker.job import Job
from machines.worker.options import Options
from machines.worker.reconnect import Backoff, forget_connections

from .fetcher import Fetcher
from .served_queues import ServedQueue, ServedQueues

log = logging.getLogger(__name__)

ROOM = 0.5  # seconds a full hand is waited on before looking what else there is to do
SECOND_LOOK = 5.0  # seconds after an outage: what a server that hung had still to read may come to pass late
OVERTAKEN = "others may have time for it sooner"
BLOCKED = "the worker's event loop does not answer"
PACE_WINDOW = 0.02  # seconds over which the pace is taken: some round trips
AHEAD = 0.05  # seconds of work that may wait here: enough to bridge a round trip on a busy server
AHEAD_OF_GROUPS = 0.02  # the same where jobs have groups: a job of another group waits for the next take
MOST_AHEAD = 500  # jobs
MOST_OF_GROUPS = 25  # jobs of one take where jobs have groups: that of another group waits for a few milliseconds
PAGE = 200
MOST_LEASED = 5_000  # jobs of one queue that are looked at: what lies behind comes back when its lease ends


class PollLoop:
    """Fetches as much as there is room for, gives it to the executor, and waits for more."""

    def __init__(
        self,
        engine: Engine,
        fetcher: Fetcher,
        served_queues: ServedQueues,
        in_flight: InFlightJobs,
        executor: Executor,
        options: Options,
        *,
        on_jobs: Callable[[Sequence[Job]], None],
    ) -> None:
        self._engine = engine
        self._fetcher = fetcher
        self._served_queues = served_queues
        self._in_flight = in_flight
        self._executor = executor
        self._options = options
        self._on_jobs = on_jobs
        self._prefetch = Prefetch(options.prefetch)
        self._reclaim = Reclaim(engine, options.id, in_flight.holds)
        self._stopped = threading.Event()
        self._taking = threading.Event()
        self._taking.set()
        self._backoff = Backoff(options.backoff)
        self._away = False
        self._reclaim_at: float | None = None
        self._full_since: float | None = None
        self._tried: list[Job] = []  # jobs in flight that are not at their first attempt
        self._has_groups = False  # whether a job of the last take has a group
        self._looped: set[ServedQueue] = set()  # queues that gave a job for the event loop
        self._sizes: dict[ServedQueue, int] = {}  # of queues whose handlers run several jobs at once: how many

    def quiet(self) -> None:
        """Take no further jobs for now."""
        self._taking.clear()

    def work(self) -> None:
        self._taking.set()

    def stop(self) -> None:
        self._stopped.set()
        self._taking.set()

    def run(self) -> None:
        ended = False
        while not ended and not self._stopped.is_set():
            try:
                ended = self._turn()
                self._report_recovery()
            except (errors.EngineUnavailable, errors.NotPermitted) as error:
                self._outage(error)
            except Exception:
                log.exception("taking jobs failed; it goes on")
                self._stopped.wait(self._backoff.next())
        if not ended:
            self._fetcher.pass_on()

    def _turn(self) -> bool:
        """Make one round; tell whether the work this worker was started for is done."""
        if not self._taking.is_set():
            self._fetcher.pass_on()
            self._taking.wait(ROOM)
            self._fetcher.rescan()
            return False
        answer = self._watch_loop()
        ahead = self._count_ahead()
        room = self._in_flight.wait_room(ahead, ROOM if answer is None else min(answer, ROOM))
        if self._stopped.is_set() or not self._taking.is_set():
            return False
        if not room:
            self._lighten(ahead)
            return False
        self._full_since = None
        jobs = self._fetch(room)
        if self._options.once:
            return True
        if jobs:
            return False
        if self._options.drain and self._is_drained():
            return True
        self._fetcher.wait(answer)
        return False

    def _watch_loop(self) -> float | None:
        """Return seconds until the event loop must have answered, None where it is not asked. What waits for one that
        does not answer goes back for others to take."""
        answer = self._executor.coroutines.probe()
        if self._executor.coroutines.is_blocked and (count := self._executor.return_coroutines(BLOCKED)):
            log.warning("a coroutine blocks the event loop: %d jobs that wait for it go back", count)
        return answer

    def _count_ahead(self) -> int:
        """Compute how many jobs to take ahead. None while a job that was tried before is at work: it may be one that
        kills its worker, and costs every job in flight an attempt."""
        ahead = self._prefetch.ahead(self._in_flight.ended, has_groups=self._has_groups)
        self._tried = [job for job in self._tried if not job.ended]
        return 0 if self._tried and self._options.prefetch is None else ahead

    def _fetch(self, room: int) -> list[Job]:
        if self._reclaim_at is not None and time.monotonic() >= self._reclaim_at:
            self._reclaim.hand_back(self._served_queues.heard)
            self._reclaim_at = None
        self._fetcher.look()
        blocked = self._looped if self._executor.coroutines.is_blocked else ()
        most = min(room, MOST_OF_GROUPS) if self._has_groups else room
        jobs = self._fetcher.fetch(most, without=blocked, sizes=self._sizes)
        if jobs:
            taken = [job.taken for job in jobs]
            kinds = {(each.machine, each.queue, each.src) for each in taken}
            self._looped |= {ServedQueue(*queue) for *queue, src in kinds if self._executor.is_coroutine(src)}
            if self._sizes or any(self._executor.is_bundled(src) for _, _, src in kinds):
                self._note_sizes(jobs)
            self._has_groups = any(each.group for each in taken)
            self._in_flight.pick_up(jobs)
            self._tried += [job for job in jobs if job.taken.attempt > 1]
            self._on_jobs(jobs)
            self._executor.give(jobs)
        return jobs

    def _note_sizes(self, jobs: Iterable[Job]) -> None:
        """Note how many jobs of a queue fill the room of one: the next take brings as many."""
        sizes: dict[ServedQueue, int] = {}
        for job in jobs:
            route, size = ServedQueue(job.machine, job.queue), self._executor.count_together(job)
            sizes[route] = min(size, sizes.get(route, size))
        for route, size in sizes.items():
            if size > 1:
                self._sizes[route] = size
            else:
                self._sizes.pop(route, None)

    def _lighten(self, ahead: int) -> None:
        """Hand back what was taken ahead at another pace, and would now wait long."""
        if not self._executor.waiting:
            return
        now = time.monotonic()
        if self._full_since is None:
            self._full_since = now
        elif now - self._full_since >= ROOM and (count := self._executor.return_waiting(ahead, OVERTAKEN)):
            log.info("%d jobs that were taken ahead go back: those at work take their time", count)

    def _is_drained(self) -> bool:
        """Tell whether nothing is in flight, ready, leased or delayed on the queues served, nor a message that could
        change that."""
        machines = {route.machine for route in self._served_queues.heard}
        if len(self._in_flight) or any(map(self._open, machines)):
            return False
        return not self._engine.drive(self._served_queues.machines).moved

    def _open(self, machine: str) -> int:
        depths = self._engine.queues(machine)
        served = [route.queue for route in self._served_queues.heard if route.machine == machine]
        return sum(depths[q][place] for q in served if q in depths for place in ("ready", "leased", "delayed"))

    def _outage(self, error: errors.SignalboxError) -> None:
        if not self._away:
            log.warning("Redis cannot be used: %s; trying on", error)
        self._away = True
        self._fetcher.rescan()
        forget_connections(self._engine)
        self._stopped.wait(self._backoff.next())

    def _report_recovery(self) -> None:
        if self._away:
            log.warning("Redis can be used again")
            self._fetcher.rescan()
        self._away = False
        self._backoff.reset()
        if self._fetcher.unanswered:
            self._reclaim.hand_back(self._served_queues.heard)
            self._fetcher.unanswered = False
            self._reclaim_at = time.monotonic() + SECOND_LOOK


class Prefetch:
    """A job that waits in this worker's line is one no other worker can take. So by default only as many are taken
    ahead as this worker has lately finished in a twentieth of a second, in a fiftieth where jobs have groups: hundreds
    where they are tiny, none where each takes a while.
    """

    def __init__(self, fixed: int | None, clock: Callable[[], float] = time.monotonic) -> None:
        self._fixed = fixed
        self._clock = clock
        self._at = clock()
        self._ended = 0
        self._pace = 0.0  # jobs a second

    def ahead(self, ended: int, *, has_groups: bool = False) -> int:
        """Compute how many jobs to take ahead. ``ended``: how many handlers have ended so far."""
        if self._fixed is not None:
            return self._fixed
        now = self._clock()
        if (passed := now - self._at) >= PACE_WINDOW:
            self._pace = (ended - self._ended) / passed
            self._at, self._ended = now, ended
        return min(MOST_AHEAD, int(self._pace * (AHEAD_OF_GROUPS if has_groups else AHEAD)))


class Reclaim:
    """A take whose answer never came may have happened: its jobs are leased to a worker that does not know of them, and
    would lie there until their leases end. To be called by the thread that takes, so that none is under way.
    """

    def __init__(self, engine: Engine, worker: str, holds: Callable[[str, str], bool]) -> None:
        """Reclaim jobs. ``holds(machine, id)``: whether the job is in flight here."""
        self._engine = engine
        self._worker = worker
        self._holds = holds

    def hand_back(self, served_queues: Iterable[ServedQueue]) -> int:
        """Hand such jobs back, their attempt not counted; how many."""
        found = 0
        for route in served_queues:
            try:
                found += self._hand_back_queue(route)
            except errors.EngineUnavailable:
                raise
            except errors.SignalboxError as error:
                log.warning("the leased jobs of %s cannot be looked at: %s", route, error)
        if found:
            log.warning("%d jobs were leased to this worker without its knowledge: handed back", found)
        return found

    def _is_unknown(self, job: TakenJob) -> bool:
        """Tell whether the job is leased to this worker and nobody knows of it. Its lease was never renewed then: one
        that was belongs to another queue, to which a handler handed the job."""
        if job.worker != self._worker or self._holds(job.machine, job.id):
            return False
        return job.lease_until <= job.taken + job.lease

    def _hand_back_queue(self, route: ServedQueue) -> int:
        lost = []
        for offset in range(0, MOST_LEASED, PAGE):
            page = self._engine.jobs(*route, place="leased", limit=PAGE, offset=offset)
            lost += [job for job in page if self._is_unknown(job)]
            if len(page) < PAGE:
                break
        found = 0
        for job in lost:
            try:
                self._engine.hand_back(job)
                found += 1
            except errors.LeaseLost:
                continue  # it ended meanwhile
        return found
