"""Takes jobs from queues, and waits when there are none, until a bell rings."""

import logging
import time
from collections import Counter, deque
from collections.abc import Callable, Collection, Mapping, Sequence

from redis import RedisCluster

from machines.engine import Engine, errors
from machines.engine.jobs.wakeups import Bell
from machines.worker.execution.completer import ProgressReporter
from machines.worker.job import Job

from .bell_listener import BellListener, BellWaiter
from .served_queues import ServedQueue, ServedQueues

log = logging.getLogger(__name__)

POLL = 0.25  # seconds between two looks while bells cannot be heard
BUSY_HOLD = 0.5  # seconds a queue that is paused or full is left alone while jobs run
REFRESH = 10.0  # seconds between two looks at what is published, should the news of it have been missed
NEWS = 1.0  # seconds between two looks for that reason: many machines may be published together
NAMES = 30.0  # seconds between two looks for queues that no definition feeds
SOME = 100  # queues of partitions whose keys one look reads: all of them in turn, should the server's memory be wrong
SOME_APART = 10  # the same on a cluster, where each is a command
MOST = 100  # jobs of one call: a few milliseconds in which the server does nothing else


class QueueWaiter(BellWaiter):
    """A bell says "look at this queue" and carries no work: losing one delays a job until the next look, never loses
    it."""

    def __init__(self, listener: BellListener, block: float) -> None:
        super().__init__()
        self._listener = listener
        self._block = block
        listener.add(self)

    @property
    def hears(self) -> bool:
        """Whether no bell can be missed at the moment."""
        return self._listener.hears

    def hear(self, bell: Bell) -> None:
        if bell.queue is not None:
            with self._changed:
                self._heard.queues.setdefault(bell.root, set()).add(bell.queue)
                self._changed.notify_all()

    def watch(self, roots: Mapping[str, tuple[str, int]]) -> None:
        """Listen to the bells of these partitions."""
        self._listener.watch(roots)

    def wait(self, seconds: float | None = None) -> None:
        """Return when something is heard, after the block time, ``seconds``, or when it is interrupted."""
        most = self._block if self.hears else min(self._block, POLL)
        super().wait(most if seconds is None else max(0.0, min(seconds, most)))

    def listen(self) -> None:
        """Wait again from now on."""
        with self._changed:
            self._interrupted = False


class Fetcher:
    """Keeps a list of the queues that may hold work, with their partitions: one leaves it when a take finds less than
    asked for, and comes back when its bell rings. So an idle worker asks no queue anything.
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
        self._roots: dict[str, tuple[str, int]] = {}  # of all machines
        self._partitions: Counter[str] = Counter()  # how many each machine has
        self._promising: dict[ServedQueue, set[int]] = {}  # in the order to try them; the partitions
        self._later: dict[ServedQueue, tuple[float, set[int]]] = {}  # when to try a queue again: its rate, or ours
        self._held: dict[ServedQueue, float] = {}  # since when a queue gives nothing: paused, full, or out of order
        self._turn: deque[ServedQueue] = deque()  # whose keys are read next
        self._refreshed = self._named = self._scanned = self._informed = -float("inf")
        self._news = False  # a definition was published that was not looked at
        self.unanswered = False  # a take had no answer: jobs may be leased to this worker that it does not know of

    # Taking

    def fetch(
        self, room: int, *, without: Collection[ServedQueue] = (), sizes: Mapping[ServedQueue, int] | None = None
    ) -> list[Job]:
        """Take up to ``room`` jobs, the same share from each queue. One call to Redis for each queue tried. Of a queue
        in ``sizes``, so many jobs take up the room of one.

        A queue that cannot be taken from must hold up no other: it is tried again with the next rescan. Queues of
        ``without`` are tried again in a moment.
        """
        jobs: list[Job] = []
        for route in self._promising.keys() & without:
            self._later[route] = self._clock() + POLL, self._promising.pop(route)
        share = -(-room // max(len(self._promising), 1))
        for route in list(self._promising):
            size = sizes.get(route, 1) if sizes else 1
            if (asked := min(min(share, room) * size, MOST)) <= 0:
                break
            try:
                jobs += (taken := self._take(route, asked))
                room -= -(-len(taken) // size)
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
        partitions = self._promising[route]
        taken = self._engine.take(route.machine, route.queue, self._worker, count=asked, partitions=partitions)
        self.unanswered = self.unanswered or taken.unanswered
        del self._promising[route]
        if len(taken) == asked and (left := partitions - taken.emptied):
            self._promising[route] = left  # there may be more: to the end of the line, the others come first
        elif taken.hint == "rate":
            self._later[route] = self._clock() + max(taken.wait or 0, 1) / 1000, partitions
        elif taken.hint:
            self._held[route] = self._clock()
        decrypt = self._engine.decrypt
        return [Job(job, began=began, progress_reporter=self._progress, decrypt=decrypt) for job in taken]

    # Waiting

    def wait(self, most: float | None = None) -> None:
        """Wait for a bell, the block time or ``most`` seconds at most, and note the queue that rang."""
        if self.look():
            return
        times = [due for due, _ in self._later.values()]
        if most is not None:
            times.append(self._clock() + most)
        if self._news:
            times.append(self._informed + NEWS)
        self._queue_waiter.wait(min(times) - self._clock() if times else None)
        self.look()

    # Looking

    def look(self) -> bool:
        """Note the queues that rang; now and then also what was published, and queues that hold work anyway. Say
        whether there are any to try."""
        heard = self._queue_waiter.collect()
        if heard.gap:
            self.rescan()
        now = self._clock()
        self._news = self._news or heard.news
        informed = self._news and now - self._informed >= NEWS
        if informed or now - self._refreshed >= REFRESH:
            self._refresh(now, news=self._news)
        self._release(now)
        self._note_rings(heard.queues)
        if now - self._scanned >= (self._rescan if self._queue_waiter.hears else POLL):
            self._scan(now)
        return bool(self._promising)

    def _refresh(self, now: float, *, news: bool) -> None:
        names = now - self._named >= NAMES
        changed = self._served_queues.refresh(names=names, news=news)
        if news:
            self._informed, self._news = now, False
        self._refreshed = now  # not before: a look that failed is no look, and the next turn has to ask again
        self._named = now if names else self._named
        roots = self._engine.wakeups.roots(self._served_queues.machines)
        if roots != self._roots:  # a machine came or went, or has grown
            self._roots, self._partitions = roots, Counter(machine for machine, _ in roots.values())
            self._queue_waiter.watch(roots)
        if changed:
            self.rescan()

    def _note_rings(self, rung: Mapping[str, set[str]]) -> None:
        """Put queues that rang before those that are tried already."""
        found: dict[ServedQueue, set[int]] = {}
        for root, queues in rung.items():
            if root not in self._roots:
                continue
            machine, number = self._roots[root]
            for queue in queues:
                route = ServedQueue(machine, queue)
                if route in self._served_queues.known or self._served_queues.meet(route, self._clock()):
                    found.setdefault(route, set()).add(number)
        for route in found:
            self._held.pop(route, None)
            self._later.pop(route, None)
        self._promise(found)

    def _promise(self, found: Mapping[ServedQueue, set[int]]) -> None:
        if not found:
            return
        before, self._promising = self._promising, {}
        for route, numbers in found.items():
            self._promising[route] = numbers | before.pop(route, set())
        self._promising |= before

    def _release(self, now: float) -> None:
        """Release queues that were held back."""
        if self._later:
            for route in [route for route, (due, _) in self._later.items() if due <= now]:
                _, partitions = self._later.pop(route)
                self._promising[route] = partitions | self._promising.get(route, set())
        if self._held:
            hold = BUSY_HOLD if self._promising else self._rescan
            for route in [route for route, since in self._held.items() if now - since >= hold]:
                del self._held[route]

    def _scan(self, now: float) -> None:
        """Look for queues that hold work, but for those that are held back: all of them after a start or a gap, later
        those that the server remembers as rung, and the keys of a few."""
        everything = self._scanned == -float("inf")
        served = [r for r in self._served_queues.heard if not (r in self._held or r in self._later)]
        if everything:
            self._turn.clear()
            found = self._engine.ready_partitions(served)
        else:
            found = self._engine.wakeups.rung(self._roots)
            for queue, numbers in self._engine.ready_partitions(self._choose_queues(served)).items():
                found.setdefault(queue, set()).update(numbers)
        self._scanned = now
        quiet = {ServedQueue(*queue): numbers for queue, numbers in found.items()}
        known = self._served_queues.known
        self._promising = {route: numbers for route, numbers in self._promising.items() if route in known}
        self._promise({r: n for r, n in quiet.items() if r in known and not (r in self._held or r in self._later)})

    def _choose_queues(self, served: Sequence[ServedQueue]) -> list[ServedQueue]:
        """Return the queues whose keys are read this time: a few, and all of them in turn."""
        if not self._turn:
            self._turn.extend(served)
        chosen: list[ServedQueue] = []
        count, most = 0, SOME_APART if isinstance(self._engine.client, RedisCluster) else SOME
        while self._turn and (not chosen or count < most):
            chosen.append(self._turn.popleft())
            count += self._partitions.get(chosen[-1].machine, 1)
        return [route for route in chosen if route in self._served_queues.known and route not in self._held]

    def rescan(self) -> None:
        """Try every queue: at the start, after an outage, and should a ring have been lost."""
        self._scanned = -float("inf")
        self._held.clear()
        self._later.clear()

    def pass_on(self) -> None:
        """Take no more: the other workers have heard the same bells."""
        self._promising = {}
