"""Runs jobs: plain functions in threads, coroutines on the event loop, each with its deadline."""

import asyncio
import contextlib
import heapq
import itertools
import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from machines.engine import errors, tracing
from machines.worker.job import Job
from machines.worker.registry import Handler, Registry

from .completer import Completer
from .in_flight import Bundle, InFlightJobs, Unit, list_jobs, read_outcomes, share_error, split_jobs
from .output import OutputKeeper
from .pools import Coroutines, Threads, Work

log = logging.getLogger(__name__)

STOPPED = "the worker stopped and returned the job"
LEAD = 0.05  # seconds before the deadline that it is acted upon, so that the job is still this worker's when it says so
SHARE = 0.1  # of the time allowed, where that is less


class Executor:
    """Gives each job to the threads or the event loop, as its handler needs, runs it there and passes on its outcome.

    The delivery rule: a handler runs at least once, its effect on the machine happens exactly once. The part that
    ends a job first, its handler or its deadline, is the one that is heard.
    """

    def __init__(
        self,
        registry: Registry,
        in_flight: InFlightJobs,
        completer: Completer,
        *,
        on_exhausted: Callable[[], object] = lambda: None,
        output: OutputKeeper,
    ) -> None:
        """Execute jobs. ``on_exhausted``: called when more handlers hang than this worker can leave behind."""
        self._registry = registry
        self._in_flight = in_flight
        self._completer = completer
        self._output = output
        self._threads = Threads(self._process, in_flight, on_exhausted)
        self.coroutines = Coroutines(self._process_async, self._abandon_unstarted, in_flight, on_exhausted)
        self._deadlines = Deadlines(self._end_overdue)

    def start(self) -> None:
        self.coroutines.start()

    def give(self, jobs: Iterable[Job]) -> None:
        apart, together = list[Work](), list[Work]()  # for the threads, for the event loop
        bundled: dict[str, list[Job]] = {}
        self._deadlines.watch(jobs)
        for job in jobs:
            handler = self._registry.get(job.taken.src)
            if handler is None:
                self._turn_away(job)
            elif handler.max_jobs:
                bundled.setdefault(handler.name, []).append(job)
            elif handler.is_async:
                together.append((handler, job))
            else:
                apart.append((handler, job))
        for name, each in bundled.items():
            if (handler := self._registry.get(name)) is not None:
                for bundle in split_jobs(each, handler.max_jobs):
                    self._in_flight.bundle(bundle)
                    (together if handler.is_async else apart).append((handler, bundle))
        if apart:
            self._threads.give(apart)
        if together:
            self.coroutines.give(together)

    def is_bundled(self, src: str) -> bool:
        """Tell whether a call of this handler runs several jobs."""
        handler = self._registry.get(src)
        return handler is not None and handler.max_jobs > 0

    def count_together(self, job: Job) -> int:
        """Return how many jobs like this one a call of its handler runs."""
        handler = self._registry.get(job.src)
        return handler.max_jobs if handler is not None and handler.max_jobs and job.attempt == 1 else 1

    def return_waiting(self, keep: int, why: str) -> int:
        """Hand back the jobs nobody has begun with, but for the ``keep`` that come first; how many."""
        return self._return(self._threads.take_back(keep) + self.coroutines.take_back(keep), why)

    def _return(self, units: list[Unit], why: str) -> int:
        for unit in units:
            self._in_flight.release(unit)
            for job in list_jobs(unit):
                if job.end():
                    self._completer.hand_back(job, why)
        return len(units)

    def return_coroutines(self, why: str) -> int:
        """Hand back the coroutines nobody has begun with; how many."""
        return self._return(self.coroutines.take_back(0), why)

    def is_coroutine(self, src: str) -> bool:
        handler = self._registry.get(src)
        return handler is not None and handler.is_async

    @property
    def waiting(self) -> int:
        """Jobs nobody has begun with."""
        return self._threads.waiting() + self.coroutines.waiting()

    def stop(self) -> None:
        self._deadlines.stop()
        self._threads.stop()
        self.coroutines.stop()

    def _turn_away(self, job: Job) -> None:
        self._in_flight.release(job)
        if job.end():
            self._completer.set_aside(job)

    # One attempt

    def _process(self, handler: Handler, job: Unit) -> None:
        """Run a plain function in the thread that calls it."""
        if isinstance(job, Bundle):
            with self._run_bundle(handler, job, self._output.read_earlier(job.jobs[0])) as (jobs, found):
                if jobs:
                    handler.check(jobs[0])
                    found.append(handler.function(jobs))
            return
        if not self._begin(job):
            return
        try:
            earlier = self._output.read_earlier(job) if job.taken.attempt > 1 else ""
            with self._output.collect(job, earlier), tracing.handle(job.taken):
                handler.check(job)
                result = handler.function(job)
        except BaseException as error:
            self._fail(job, _as_exception(handler, error))
        else:
            self._complete(job, result)

    async def _process_async(self, handler: Handler, job: Unit) -> None:
        """Process a job by a coroutine, whose cancelling is how it learns that its job is."""
        if isinstance(job, Bundle):
            with self._run_bundle(handler, job, await self._read_earlier(job.jobs[0])) as (jobs, found):
                if jobs:
                    handler.check(jobs[0])
                    found.append(await handler.function(jobs))
            return
        if not self._begin(job):
            return
        try:
            earlier = await self._read_earlier(job)
            with self._output.collect(job, earlier), tracing.handle(job.taken):
                handler.check(job)
                result = await handler.function(job)
        except BaseException as error:
            self._fail(job, _as_exception(handler, error))
        else:
            self._complete(job, result)

    async def _read_earlier(self, job: Job) -> str:
        return await asyncio.to_thread(self._output.read_earlier, job) if self._output.has_earlier(job) else ""

    @contextlib.contextmanager
    def _run_bundle(self, handler: Handler, bundle: Bundle, earlier: str) -> Iterator[tuple[list[Job], list[Any]]]:
        """Run the block, which calls the handler with these jobs and adds what it returned to this list; end each job.
        ``earlier``: what earlier attempts of a job that is alone said."""
        jobs, found = [job for job in bundle.jobs if self._begin(job)], list[Any]()
        outcomes: list[Any] = []
        try:
            with self._output.collect_together(jobs, earlier), contextlib.ExitStack() as spans:
                for job in jobs:
                    spans.enter_context(tracing.handle(job.taken))
                yield jobs, found
                outcomes = read_outcomes(handler, jobs, found[0]) if jobs else []
                for job, outcome in zip(jobs, outcomes, strict=True):
                    if isinstance(outcome, BaseException):
                        self._output.end(job)
        except BaseException as error:
            outcomes = share_error(jobs, error)
        has_secrets = any(job.has_secrets for job in jobs)
        for job, outcome in zip(jobs, outcomes, strict=True):
            job.has_secrets = has_secrets
            try:
                if isinstance(outcome, BaseException):
                    self._fail(job, _as_exception(handler, outcome))
                else:
                    self._complete(job, outcome)
            except (
                Exception
            ) as error:  # of an exception that cannot be written as a text: the other jobs end as they are
                job.end()
                self._completer.fail(job, error)
                self._in_flight.release(job)
        self._in_flight.release(bundle)

    def _end_overdue(self, job: Job) -> None:
        """End a job whose deadline is over."""
        first, begun = job.end(), self._in_flight.runs(job)
        self._output.end(job)
        job.expire()
        if first and begun:
            self._completer.fail(job, job.late())
        elif first:
            self._in_flight.release(job)
            self._completer.hand_back(job, "the deadline passed before the attempt started")
        unit = job.bundle or job
        if not isinstance(unit, Bundle) or unit.is_over:
            self._threads.leave_behind(unit)
            self.coroutines.leave_behind(unit)

    def _abandon_unstarted(self, unit: Unit) -> None:
        """Fail a coroutine that was cancelled before its first step."""
        for job in list_jobs(unit):
            if not job.ended:
                self._fail(job, RuntimeError("cancelled before it began"))
        self._in_flight.release(unit)

    def _begin(self, job: Job) -> bool:
        """Tell whether to run it: a job may be lost, or its deadline over, while it waits in line."""
        self._in_flight.begin(job)
        if job.lost and job.end():
            self._forget(job)
            return False
        if job.ended:
            self._in_flight.release(job)
            return False
        return True

    def _complete(self, job: Job, result: object) -> None:
        if not job.end():
            self._in_flight.release(job)
        elif job.lost:
            self._forget(job)
        else:
            self._completer.complete(job, result)
            self._in_flight.release(job)

    def _fail(self, job: Job, error: BaseException) -> None:
        if not job.end():
            log.info("%s: ended too late: %s", job, type(error).__name__)
            self._in_flight.release(job)
            return
        if isinstance(error, errors.LeaseLost) and error.job == job.id:
            job.abandon(error.why)
        if job.lost:  # a handler that was asked to stop may end any way it likes
            self._forget(job)
            return
        self._completer.fail(job, error)
        self._in_flight.release(job)

    def _forget(self, job: Job) -> None:
        self._in_flight.release(job)
        self._completer.forget(job)


def _as_exception(handler: Handler, error: BaseException) -> Exception:
    """Return the exception that an attempt failed with; what is none, and would end the worker, becomes one."""
    if isinstance(error, Exception):
        return error
    cancelled = handler.is_async and isinstance(error, asyncio.CancelledError)
    how = "cancelled itself" if cancelled else f"ended with {error!r}"
    return RuntimeError(f"the handler {handler.where} {how}")


class Deadlines:
    """Calls ``overdue`` for each job whose time is up. Its thread starts with the first job that has a deadline."""

    def __init__(self, overdue: Callable[[Job], None], clock: Callable[[], float] = time.monotonic) -> None:
        self._end_overdue = overdue
        self._clock = clock
        self._heap: list[tuple[float, int, Job]] = []
        self._numbers = itertools.count()
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._stopped = False

    def watch(self, jobs: Iterable[Job]) -> None:
        limited = [(job.ends, job) for job in jobs if job.ends is not None]
        if not limited:
            return
        with self._changed:
            for ends, job in limited:
                lead = min(LEAD, job.taken.timeout / 1000 * SHARE)
                heapq.heappush(self._heap, (ends - lead, next(self._numbers), job))
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="deadlines", daemon=True)
                self._thread.start()
            self._changed.notify()

    def stop(self) -> None:
        with self._changed:
            self._stopped = True
            self._changed.notify()

    def _run(self) -> None:
        while True:
            with self._changed:
                due = self._pop_due()
                if not due:
                    if self._stopped:
                        return
                    self._changed.wait(self._heap[0][0] - self._clock() if self._heap else None)
            for job in due:
                self._end_overdue(job)

    def _pop_due(self) -> list[Job]:
        due, now = [], self._clock()
        while self._heap and (self._heap[0][0] <= now or self._heap[0][2].ended):
            job = heapq.heappop(self._heap)[2]
            if not job.ended:
                due.append(job)
        return due
