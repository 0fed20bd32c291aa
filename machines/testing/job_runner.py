"""Runs jobs in the process of the test, one at a time, with the handlers of the project or given ones."""

import asyncio
import difflib
import sys
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from machines.engine import Engine, LeaseLost, SignalboxError
from machines.engine import Job as TakenJob
from machines.engine.storage import Storage
from machines.worker import failure
from machines.worker.execution.in_flight import read_outcomes
from machines.worker.job import HandBack, Job
from machines.worker.registry import Handler, Registry, discover, handlers

from .assertions import list_jobs
from .django_binding import is_django_project

WORKER = "test"
Handlers = Mapping[str, Callable[..., Any]]
OPEN = ("ready", "delayed", "leased")
MOST_JOBS = 1000  # taken from a queue to find one of them


@dataclass(frozen=True, slots=True)
class JobRun:
    """One attempt of a job. ``outcome``: "completed", "delayed" (it failed and is tried again), "dead" (it failed for
    the last time), "lost" (the job was withdrawn or its lease ended meanwhile) or "handed back". ``error``: what its
    handler raised, or how the machine refused its result; ``result``: what its handler returned."""

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
        return failure.format_trace(self.error) if self.error is not None else ""

    def __str__(self) -> str:
        whose = f" of {self.job.instance}" if self.job.instance else ""
        said = f": {type(self.error).__name__}: {failure.format_error(self.error)}" if self.error is not None else ""
        return f"{self.job.src}{whose}, attempt {self.job.attempt} of {self.job.attempts}: {self.outcome}{said}"


class JobRunner:
    """Takes ready jobs and runs their handlers, in the order of machines, queues, priority and age."""

    def __init__(self, engine: Engine, given: Handlers | None) -> None:
        """Prepare to run jobs.

        ``given``: handlers by name that replace all registered ones.
        """
        self._engine = engine
        self._registry = handlers
        if given is not None:
            self._registry = Registry()
            for name, function in given.items():
                self._registry.handler(name)(function)
        elif is_django_project():
            self._registry = discover()  # of every installed app

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
        job = Job(taken, progress_reporter=_Progress(self._engine), decrypt=self._engine.decrypt)
        try:
            result = _call(handler, job)
        except LeaseLost as error:
            return self._fail(job, error) if error.job != taken.id else JobRun(taken, "lost", error=error)
        except HandBack as error:
            self._engine.hand_back(taken, delay=int(error.seconds * 1000))
            return JobRun(taken, "handed back", error=error)
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
        try:
            self._write(job)
            outcome = failure.report(self._engine, job, error)
        except LeaseLost:
            outcome = "lost"
        run = JobRun(job.taken, outcome, result, error)
        sys.stderr.write(f"signalbox: job {run}\n{job.conceal(run.trace)}")
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


def _call(handler: Handler, job: Job) -> Any:
    """Call a handler. A coroutine runs on an event loop of its own; in a Django project the code that it runs by
    ``sync_to_async`` uses this thread, and so the database connection of the test."""
    handler.check(job)
    if handler.max_jobs:
        (outcome,) = read_outcomes(handler, [job], _call_function(handler, [job]))
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome
    return _call_function(handler, job)


def _call_function(handler: Handler, given: Job | list[Job]) -> Any:
    if not handler.is_async:
        return handler.function(given)
    run = _run_coroutine
    if "django" in sys.modules:
        from asgiref.sync import async_to_sync

        run = async_to_sync  # type: ignore[assignment]
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return run(handler.function)(given)
    with ThreadPoolExecutor(1) as pool:  # the test itself is a coroutine, whose loop is busy with this call
        return pool.submit(_run_coroutine(handler.function), given).result()


def _run_coroutine(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda job: asyncio.run(function(job))


class Impossible(AssertionError):
    """A step cannot be done: there is no such job, or no such instance. The text says what there is."""


def list_open(engine: Engine, machine: str = "") -> list[TakenJob]:
    """List the jobs that wait or run, of one machine or of all."""
    names = [machine] if machine else sorted(engine.machines())
    return [job for name in names for job in list_jobs(engine, name) if job.place in OPEN]


def take_job(engine: Engine, now: int, name: str, machine: str = "", owner: tuple[str, str] = ("", "")) -> TakenJob:
    """Lease the one job of the invoke or handler ``name``. ``machine``: whose job it is, or any; ``owner``: machine and
    id of the instance whose job goes before those of others; an empty id is any. Raises Impossible."""
    wanted = _find(engine, name, machine, owner)
    if wanted.place == "delayed":
        raise Impossible(f"the job {wanted.src!r} becomes ready in {wanted.due - now} ms; let that time pass before")
    found = None
    for job in engine.take(wanted.machine, wanted.queue, WORKER, count=MOST_JOBS):
        if job.id == wanted.id:
            found = job
        else:
            engine.hand_back(job)
    if found is None:
        raise Impossible(f"the job {wanted.src!r} cannot be taken now: it runs, or its queue is held back")
    return found


def _find(engine: Engine, name: str, machine: str, owner: tuple[str, str]) -> TakenJob:
    jobs = [job for job in list_open(engine, machine) if name in (job.invoke, job.src)]
    own = [job for job in jobs if job.machine == owner[0] and owner[1] in ("", job.instance)]
    found = own or jobs
    exact = [job for job in found if job.invoke == name] or found
    if len(exact) == 1:
        return exact[0]
    if exact:
        which = ", ".join(f"{job.invoke or job.src} of {job.machine} {job.instance}" for job in exact)
        raise Impossible(f"{len(exact)} jobs are named {name!r}: {which}; name the invoke, or whose job it is")
    waiting = ", ".join(
        job.src if job.machine == owner[0] else f"{job.src} of {job.machine}" for job in list_open(engine)
    )
    raise Impossible(f"no job {name!r} waits; jobs that wait: {waiting or 'none'}")
