"""The threads that run plain functions."""

from __future__ import annotations

import logging
import queue
import threading
from collections import deque
from collections.abc import Callable, Iterable, Sequence

from machines.worker.registry import Handler

from . import database_connections
from .bundles import Bundle, Unit, list_jobs
from .in_flight import InFlightJobs

log = logging.getLogger(__name__)

Work = tuple[Handler, Unit]
AGED = 20  # each twentieth job that is popped comes from the lowest priority, so that none waits for ever


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
            priority = next(iter(self._priorities), 0)
            if len(self._priorities) > 1:
                priority = (min if self._popped % AGED == AGED - 1 else max)(self._priorities)
            work = self._pop(priority, next(iter(self._priorities.get(priority, ())), ""), last=False)
            self._popped += 1
            return work

    def pop_last(self) -> Work:
        """Remove and return the last one of the lowest priority's group with the most. Raises IndexError when there is
        none."""
        with self._lock:
            priority = min(self._priorities, default=0)
            groups = self._priorities.get(priority, {})
            return self._pop(priority, max(groups, key=lambda group: len(groups[group]), default=""), last=True)

    def _pop(self, priority: int, group: str, *, last: bool) -> Work:
        groups = self._priorities.get(priority)
        if not groups:
            raise IndexError("nothing waits")
        waiting = groups[group]
        work = waiting.pop() if last else waiting.popleft()
        if not waiting:
            del groups[group]
            if not groups:
                del self._priorities[priority]
        elif len(groups) > 1:
            groups[group] = groups.pop(group)  # to the end of the turns
        self._count -= 1
        return work


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
