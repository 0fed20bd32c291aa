"""Runs jobs in the process of the test, one at a time, with the handlers of the project or given ones."""

from __future__ import annotations

import asyncio
import difflib
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from machines.engine import Engine, LeaseLost, SignalboxError
from machines.engine import Job as TakenJob
from machines.engine.storage import Storage
from machines.worker.failure import format_error, format_trace, list_bases
from machines.worker.job import Job
from machines.worker.registry import ForeignJob, Handler, Registry, discover, handlers

WORKER = "test"
Handlers = Mapping[str, Callable[..., Any]]


@dataclass(frozen=True, slots=True)
class JobRun:
    """One attempt of a job. ``outcome``: "completed", "delayed" (it failed and is tried again), "dead" (it failed for
    the last time) or "lost" (the job was withdrawn or its lease ended meanwhile). ``error``: what its handler raised,
    or how the machine refused its result; ``result``: what its handler returned."""

    job: TakenJob
    outcome: str
    result: Any = None
    error: BaseException | None = None

    @property
    def src(self) -> str:
        return self.job.src

    @property
    def trace(self) -> str:
        """Return the traceback of ``error``; empty without one."""
        return format_trace(self.error) if self.error is not None else ""

    def __str__(self) -> str:
        whose = f" of {self.job.instance}" if self.job.instance else ""
        said = f": {type(self.error).__name__}: {format_error(self.error)}" if self.error is not None else ""
        return f"{self.job.src}{whose}, attempt {self.job.attempt} of {self.job.attempts}: {self.outcome}{said}"


class JobRunner:
    """Takes ready jobs and runs their handlers, in the order of machines, queues, priority and age."""

    def __init__(self, engine: Engine, given: Handlers | None) -> None:
        """Prepare to run jobs.

        ``given``: handlers by name that replace all registered ones.
        """
        self._engine = engine
        self._registry = _make_registry(given) if given is not None else _find_registered()

    def run(self, machines: list[str], queue: str | None, limit: int, reraise: bool) -> list[JobRun]:
        """Run ready jobs until there are none. Raises AssertionError where there are more than ``limit``, or one has no
        handler; with ``reraise`` what a handler raises."""
        __tracebackhide__ = True
        runs: list[JobRun] = []
        before = -1
        while len(runs) > before:
            before = len(runs)
            for job in self._take_round(machines, queue):
                if len(runs) >= limit:
                    self._engine.hand_back(job)
                    ran = "\n".join(f"  {run}" for run in runs[-10:])
                    raise AssertionError(f"run_jobs ran {limit} jobs and there are more; the last ones:\n{ran}")
                runs.append(self._run(job))
                if reraise and (error := runs[-1].error) is not None:
                    raise error
        return runs

    def _take_round(self, machines: list[str], queue: str | None) -> Iterator[TakenJob]:
        """Take one job of each queue that has any, each when the one before has run."""
        for machine, name in sorted(self._engine.ready(self._engine.queue_names(machines))):
            if queue is None or name == queue:
                yield from self._engine.take(machine, name, WORKER)

    def _run(self, taken: TakenJob) -> JobRun:
        __tracebackhide__ = True
        handler = self._registry.get(taken.src)
        if handler is None:
            self._engine.hand_back(taken)
            raise AssertionError(self._describe_missing(taken))
        job = Job(taken, progress_reporter=_Progress(self._engine))
        try:
            result = _call(handler, job)
        except LeaseLost as error:
            return self._fail(job, error) if error.job != taken.id else JobRun(taken, "lost", error=error)
        except (Exception, SystemExit) as error:
            return self._fail(job, _leave_out_own_frames(error))
        try:
            self._write(job)
            self._engine.complete(taken, result)
        except LeaseLost as error:
            return JobRun(taken, "lost", result, error)
        except SignalboxError as error:  # the machine refuses the result, or the result is not JSON
            return self._fail(job, error, result)
        return JobRun(taken, "completed", result)

    def _fail(self, job: Job, error: BaseException, result: Any = None) -> JobRun:
        """Report the failure as a worker does, and print its traceback, which pytest shows with a failed test."""
        text, trace, kind = format_error(error), format_trace(error), type(error).__name__
        try:
            self._write(job)
            retry = not isinstance(error, ForeignJob)
            outcome = self._engine.fail(job.taken, text, kind=kind, trace=trace, kinds=list_bases(error), retry=retry)
        except LeaseLost:
            outcome = "lost"
        run = JobRun(job.taken, outcome, result, error)
        sys.stderr.write(f"signalbox: job {run}\n{trace}")
        return run

    def _write(self, job: Job) -> None:
        if job.writes:
            Storage(self._engine.client).commands(job.writes)

    def _describe_missing(self, job: TakenJob) -> str:
        known = list(self._registry)
        close = difflib.get_close_matches(job.src, known, 1)
        hint = f'; did you mean "{close[0]}"?' if close else "."
        whose = f"{job.machine} {job.instance}".rstrip()
        return (
            f"no handler {job.src!r} for a job of {whose}{hint} Handlers here: {', '.join(known) or 'none'}. "
            f"Register it with @handler({job.src!r}) in a handlers.py, or give it: run_jobs({{{job.src!r}: function}})"
        )


def _leave_out_own_frames(error: BaseException) -> BaseException:
    """Begin the traceback of an exception with the handler."""
    frame = error.__traceback__
    while frame is not None and frame.tb_frame.f_code.co_filename == __file__:
        frame = frame.tb_next
    return error.with_traceback(frame or error.__traceback__)


class _Progress:
    """Sends the progress of a job at once."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def note(self, job: Job, done: float, total: float | None, note: str) -> None:
        self._engine.progress(job.taken, done, total, note)


def _make_registry(given: Handlers) -> Registry:
    registry = Registry()
    for name, function in given.items():
        registry.handler(name)(function)
    return registry


def _find_registered() -> Registry:
    """Return the handlers that the process has imported; in a Django project those of every installed app."""
    from .django_binding import is_django_project

    return discover() if is_django_project() else handlers


def _call(handler: Handler, job: Job) -> Any:
    """Call a handler. A coroutine runs on an event loop of its own; in a Django project the code that it runs by
    ``sync_to_async`` uses this thread, and so the database connection of the test."""
    handler.check(job)
    if not handler.is_async:
        return handler.function(job)
    run = _run_coroutine
    if "django" in sys.modules:
        from asgiref.sync import async_to_sync

        run = async_to_sync  # type: ignore[assignment]
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return run(handler.function)(job)
    return _call_in_thread(lambda: _run_coroutine(handler.function)(job))  # the test itself is a coroutine


def _run_coroutine(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda job: asyncio.run(function(job))


def _call_in_thread(call: Callable[[], Any]) -> Any:
    """Run in a thread, because the loop of this one is busy with the caller."""
    found: list[Any] = []
    raised: list[BaseException] = []

    def run() -> None:
        try:
            found.append(call())
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=run, name="signalbox-handler")
    thread.start()
    thread.join()
    if raised:
        raise raised[0]
    return found[0]
