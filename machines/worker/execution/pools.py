"""Runs handlers: plain functions in threads, coroutines on one event loop in one thread; and keeps waiting jobs."""

import asyncio
import contextlib
import logging
import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Coroutine, Iterable, Sequence
from functools import partial
from typing import Any

from machines.worker.registry import Handler

from . import database_connections
from .in_flight import Bundle, InFlightJobs, Unit, list_jobs

log = logging.getLogger(__name__)

Work = tuple[Handler, Unit]
AGED = 20  # each twentieth job that is popped comes from the lowest priority, so that none waits for ever
MOMENT = 1.0  # seconds that a coroutine may take to end after it was cancelled
LAG = 0.25  # seconds without an answer after which the loop counts as blocked
PROBE = 1.0  # seconds between two questions to a loop that answers
HOPELESS = 60.0  # seconds without an answer after which a coroutine past its deadline is taken never to end


class WaitingLine:
    """The highest priority goes first. Within it groups take turns, whatever their weights, and the jobs of each keep
    their order: what was taken ahead for one holds up no other."""

    def __init__(self) -> None:
        self._priorities: dict[int, dict[str, deque[Work]]] = {}  # groups in the order of their turns; nothing is empty
        self._count = self._popped = 0
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return self._count

    def put(self, works: Iterable[Work]) -> None:
        with self._lock:
            for work in works:
                priority, group = _find_place(work[1])
                if (groups := self._priorities.get(priority)) is None:
                    groups = self._priorities[priority] = {}
                if (waiting := groups.get(group)) is None:
                    waiting = groups[group] = deque()
                waiting.append(work)
                self._count += 1

    def pop(self) -> Work:
        """Remove and return the next one. Raises IndexError when there is none."""
        with self._lock:
            if not self._count:
                raise IndexError("nothing waits")
            if len(self._priorities) == 1:
                [priority] = self._priorities
            else:
                priority = (min if self._popped % AGED == AGED - 1 else max)(self._priorities)
            groups = self._priorities[priority]
            group = next(iter(groups))
            waiting = groups[group]
            work = waiting.popleft()
            self._popped += 1
            self._count -= 1
            if not waiting or len(groups) > 1:
                self._end_turn(priority, group)
            return work

    def pop_last(self) -> Work:
        """Remove and return the last one of the lowest priority's group with the most. Raises IndexError when there is
        none."""
        with self._lock:
            priority = min(self._priorities, default=0)
            if not (groups := self._priorities.get(priority)):
                raise IndexError("nothing waits")
            group = max(groups, key=lambda group: len(groups[group]))
            work = groups[group].pop()
            self._count -= 1
            self._end_turn(priority, group)
            return work

    def _end_turn(self, priority: int, group: str) -> None:
        """Put a group behind the others, or remove it where nothing of it waits."""
        groups = self._priorities[priority]
        if waiting := groups.pop(group):
            groups[group] = waiting
        elif not groups:
            del self._priorities[priority]


def _find_place(unit: Unit) -> tuple[int, str]:
    """Return the priority and the group of a job, or of jobs that run together."""
    if isinstance(unit, Bundle):
        return max(job.taken.priority for job in unit.jobs), unit.jobs[0].taken.group
    return unit.taken.priority, unit.taken.group


class Threads:
    """As many as the hand has room, all taking from one line: a slow handler holds up its own thread and no other. One
    starts when a job waits and all others are at work.

    They are daemons: a handler that never ends cannot hold up an exit. A thread that is still busy past its job's
    deadline is left behind and another takes its place; when too many are, ``on_exhausted`` is called.
    """

    def __init__(
        self, process: Callable[[Handler, Unit], None], in_flight: InFlightJobs, on_exhausted: Callable[[], object]
    ) -> None:
        self._process = process
        self._in_flight = in_flight
        self._on_exhausted = on_exhausted
        self._line = WaitingLine()
        self._tickets: queue.SimpleQueue[bool] = queue.SimpleQueue()  # True for each job in line, False to stop
        self._at: dict[Unit, threading.Thread] = {}
        self._left: set[threading.Thread] = set()
        self._lock = threading.Lock()
        self._started = 0
        self._there = 0  # threads that take jobs, or will again after the one they are at
        database_connections.watch()

    def give(self, works: Sequence[Work]) -> None:
        self._line.put(works)
        for _ in works:
            self._tickets.put(True)
            if self._there < self._in_flight.size and self._tickets.qsize() > self._there - len(self._at):
                self._reinforce()

    def _reinforce(self) -> None:
        with self._lock:
            if self._there < self._in_flight.size:
                self._add()

    def _add(self) -> None:
        self._there += 1
        self._started += 1
        threading.Thread(target=self._work, name=f"handler-{self._started}", daemon=True).start()

    def waiting(self) -> int:
        return self._tickets.qsize()

    def take_back(self, keep: int) -> list[Unit]:
        """Give back the jobs nobody has begun with, but for ``keep`` of them: those of higher priority stay."""
        tickets = 0
        while not self._tickets.empty():
            try:
                tickets += self._tickets.get_nowait()
            except queue.Empty:
                break
        for _ in range(min(keep, tickets)):
            self._tickets.put(True)
        return [self._line.pop_last()[1] for _ in range(tickets - keep)]

    def leave_behind(self, unit: Unit) -> None:
        """Leave a thread behind that is busy with jobs whose deadline is over: another takes its place."""
        with self._lock:
            thread = self._at.get(unit)
            if thread is None or thread in self._left:
                return
            self._in_flight.stuck.add(unit)
            if len(self._left) >= self._in_flight.most_stuck:
                self._on_exhausted()
                return
            self._left.add(thread)
            self._there -= 1
            self._add()
        self._in_flight.release(unit)

    def stop(self) -> None:
        """Stop threads after the job they are at; a stuck one is not waited for."""
        for _ in range(self._there):
            self._tickets.put(False)

    def _work(self) -> None:
        me = threading.current_thread()
        while self._tickets.get():
            handler, unit = self._line.pop()
            self._at[unit] = me
            if self._there < self._in_flight.size and not self._tickets.empty():
                self._reinforce()  # who put the next job may have taken this thread for idle
            database_connections.tidy()
            try:
                self._process(handler, unit)
            except Exception:
                log.exception("%s: the worker itself failed; the job comes back when its lease ends", unit)
                for each in (*list_jobs(unit), unit):
                    self._in_flight.release(each)
                self._in_flight.lay_down(list_jobs(unit))
            database_connections.tidy()
            if self._was_left(unit, me):
                return

    def _was_left(self, unit: Unit, me: threading.Thread) -> bool:
        """Tell whether another has taken this thread's place meanwhile."""
        del self._at[unit]
        if not self._in_flight.stuck:
            return False
        with self._lock:
            self._in_flight.stuck.discard(unit)
            left = me in self._left
            self._left.discard(me)
        return left


class Coroutines:
    """As many at a time as the hand has room; the others wait in line. One that goes on past its job's deadline, though
    it was cancelled, is left behind and gives its place to another. ``on_exhausted`` is called when too many are, and
    when one past its deadline keeps the loop from answering.

    What it keeps is touched by the loop's thread only, but for the line, which any thread may take from, and the
    time of the question that the loop has not answered, which the thread that takes jobs sets."""

    def __init__(
        self,
        process: Callable[[Handler, Unit], Coroutine[Any, Any, None]],
        abandon_unstarted: Callable[[Unit], None],
        in_flight: InFlightJobs,
        on_exhausted: Callable[[], object],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._process = process
        self._abandon_unstarted = abandon_unstarted
        self._on_exhausted = on_exhausted
        self._clock = clock
        self._asked: float | None = None  # since when the loop owes an answer
        self._answered = -float("inf")
        self._most = in_flight.size
        self._runner = asyncio.Runner(loop_factory=asyncio.new_event_loop)
        self._loop = self._runner.get_loop()
        self._thread = threading.Thread(target=self._run, name="coroutines", daemon=True)
        self._line = WaitingLine()
        self._in_flight = in_flight
        self._at: dict[Unit, asyncio.Task[None]] = {}
        self._left: set[Unit] = set()
        self._tidying: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(1.0)

    def _run(self) -> None:
        with self._runner:  # which ends what is left when the loop is stopped
            self._loop.run_forever()

    def give(self, work: list[Work]) -> None:
        self._line.put(work)
        self._ask()

    def waiting(self) -> int:
        return len(self._line)

    def take_back(self, keep: int) -> list[Unit]:
        """Give back the jobs nobody has begun with, but for ``keep`` of them: those of higher priority stay."""
        taken: list[Unit] = []
        while len(self._line) > keep:
            try:
                taken.append(self._line.pop_last()[1])
            except IndexError:
                break
        return taken

    # Whether the loop answers

    @property
    def is_blocked(self) -> bool:
        """Whether the loop has not answered for too long: a coroutine computes, or waits without `await`."""
        asked = self._asked
        return asked is not None and self._clock() - asked >= LAG

    def find_blocker(self) -> Unit | None:
        """Return the job whose coroutine blocks the loop, where that is known."""
        if not self.is_blocked:
            return None
        with contextlib.suppress(Exception):  # another thread's current task: each Python has its own way to keep it
            task = asyncio.current_task(self._loop)
            return next((unit for unit, each in list(self._at.items()) if each is task), None)
        return None

    def probe(self) -> float | None:
        """Ask the loop for an answer where coroutines are at work or wait. Return seconds after which to look again;
        None where there is nothing to look for."""
        now, asked = self._clock(), self._asked
        if asked is None:
            rests = 0.0 if self._line else self._answered + PROBE - now
            if not self._at and not self._line:
                return None
            if rests > 0:
                return rests
            self._ask()
            return LAG
        if now - asked < LAG:
            return asked + LAG - now
        late = [unit for unit in list(self._at) if unit.expired]
        for unit in late:
            self._in_flight.stuck.add(unit)
            if unit not in self._at:  # it ended meanwhile
                self._in_flight.stuck.discard(unit)
        if late and now - asked >= HOPELESS:
            self._on_exhausted()
        return LAG

    def _ask(self) -> None:
        if self._asked is None:
            self._asked = self._clock()
        self._loop.call_soon_threadsafe(self._answer)

    def _answer(self) -> None:
        self._asked, self._answered = None, self._clock()
        self._fill()

    def leave_behind(self, unit: Unit) -> None:
        """Leave a cancelled coroutine behind whose deadline is over."""
        with contextlib.suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(self._loop.call_later, MOMENT, self._leave, unit)

    def _leave(self, unit: Unit) -> None:
        if unit not in self._at:
            return
        self._in_flight.stuck.add(unit)
        if len(self._left) >= self._in_flight.most_stuck:
            self._on_exhausted()
            return
        self._left.add(unit)
        self._in_flight.release(unit)
        self._fill()

    def _fill(self) -> None:
        while len(self._at) - len(self._left) < self._most:
            try:
                handler, unit = self._line.pop()
            except IndexError:
                return
            task = self._loop.create_task(self._process(handler, unit))
            self._at[unit] = task
            task.add_done_callback(partial(self._finish, unit))
            unit.on_loss(partial(self._loop.call_soon_threadsafe, task.cancel))

    def _finish(self, unit: Unit, task: asyncio.Task[None]) -> None:
        del self._at[unit]
        self._left.discard(unit)
        self._in_flight.stuck.discard(unit)
        if not unit.ended:  # cancelled before its first step
            self._abandon_unstarted(unit)
        if database_connections.was_used():
            self._tidy()
        if self._line:
            self._fill()

    def _tidy(self) -> None:
        """Close connections without a handler waiting: queries that come now are done after it, by the same thread."""
        if self._tidying is None or self._tidying.done():
            alone = not self._at and not self._line
            self._tidying = self._loop.create_task(database_connections.tidy_for_coroutines(alone))
