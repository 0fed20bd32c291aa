"""Runs jobs: plain functions in threads, coroutines on the event loop, each with its deadline."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from machines.worker.job import Job
from machines.worker.registry import Registry

from .completer import Completer
from .coroutines import Coroutines
from .deadlines import Deadlines
from .in_flight import InFlightJobs
from .processor import Processor
from .threads import Threads


class Executor:
    """Gives each job to the threads or the event loop, as its handler needs."""

    def __init__(
        self,
        registry: Registry,
        in_flight: InFlightJobs,
        completer: Completer,
        *,
        on_exhausted: Callable[[], object] = lambda: None,
    ) -> None:
        """Execute jobs. ``on_exhausted``: called when more handlers hang than this worker can leave behind."""
        self._registry = registry
        self._in_flight = in_flight
        self._completer = completer
        self._processor = Processor(in_flight, completer)
        self._threads = Threads(self._processor, in_flight, on_exhausted)
        self._coroutines = Coroutines(self._processor, in_flight, on_exhausted)
        self._deadlines = Deadlines(self._overdue)

    def start(self) -> None:
        self._coroutines.start()

    def give(self, jobs: Iterable[Job]) -> None:
        together = []
        self._deadlines.watch(jobs)
        for job in jobs:
            handler = self._registry.get(job.taken.src)
            if handler is None:
                self._turn_away(job)
            elif handler.is_async:
                together.append((handler, job))
            else:
                self._threads.give(handler, job)
        if together:
            self._coroutines.give(together)

    def return_waiting(self, keep: int, why: str) -> int:
        """Hand back the jobs nobody has begun with, but for the ``keep`` that come first; how many."""
        return self._return(self._threads.take_back(keep) + self._coroutines.take_back(keep), why)

    def _return(self, jobs: list[Job], why: str) -> int:
        for job in jobs:
            self._in_flight.release(job)
            if job.end():
                self._completer.hand_back(job, why)
        return len(jobs)

    def find_blocker(self) -> Job | None:
        """Return the job whose coroutine blocks the event loop, where that is known."""
        return self._coroutines.find_blocker()

    @property
    def is_loop_blocked(self) -> bool:
        """Whether the event loop owes an answer: coroutines given to it would wait."""
        return self._coroutines.is_blocked

    def probe_loop(self) -> float | None:
        """Ask the event loop for an answer where coroutines are at work. Return seconds after which to look whether it
        came; None where there is nothing to wait for."""
        return self._coroutines.probe()

    def return_coroutines(self, why: str) -> int:
        """Hand back the coroutines nobody has begun with; how many."""
        return self._return(self._coroutines.take_back(0), why)

    def is_coroutine(self, src: str) -> bool:
        handler = self._registry.get(src)
        return handler is not None and handler.is_async

    @property
    def waiting(self) -> int:
        """Jobs nobody has begun with."""
        return self._threads.waiting() + self._coroutines.waiting()

    def stop(self) -> None:
        self._deadlines.stop()
        self._threads.stop()
        self._coroutines.stop()

    def _turn_away(self, job: Job) -> None:
        self._in_flight.release(job)
        if job.end():
            self._completer.set_aside(job)

    def _overdue(self, job: Job) -> None:
        self._processor.overdue(job)
        self._threads.leave_behind(job)
        self._coroutines.leave_behind(job)
