"""Runs the handler of one job, and passes on its outcome."""

from __future__ import annotations

import asyncio
import logging

from machines.engine import errors
from machines.worker.job import Job
from machines.worker.registry import Handler

from .completer import Completer
from .in_flight import InFlightJobs

log = logging.getLogger(__name__)

STOPPED = "the worker stopped and returned the job"


class Processor:
    """Shared by all threads and the loop.

    The delivery rule: a handler runs at least once, its effect on the machine happens exactly once. The part that
    ends a job first, its handler or its deadline, is the one that is heard.
    """

    def __init__(self, in_flight: InFlightJobs, completer: Completer) -> None:
        self._in_flight = in_flight
        self._completer = completer

    def process(self, handler: Handler, job: Job) -> None:
        """Run a plain function in the thread that calls it."""
        if not self._begin(job):
            return
        try:
            handler.check(job)
            result = handler.function(job)
        except Exception as error:
            self._fail(job, error)
        except BaseException as error:
            self._fail(job, _exit(handler, error))
        else:
            self._complete(job, result)

    async def process_async(self, handler: Handler, job: Job) -> None:
        """Process a job by a coroutine, whose cancelling is how it learns that its job is."""
        if not self._begin(job):
            return
        try:
            handler.check(job)
            result = await handler.function(job)
        except asyncio.CancelledError:
            self._fail(job, RuntimeError(f"the handler {handler.where} cancelled itself"))
        except Exception as error:
            self._fail(job, error)
        except BaseException as error:
            self._fail(job, _exit(handler, error))
        else:
            self._complete(job, result)

    def overdue(self, job: Job) -> None:
        """End a job whose deadline is over."""
        first, begun = job.end(), self._in_flight.runs(job)
        job.expire()
        if not first:
            return
        if begun:
            self._completer.fail(job, job.late())
        else:
            self._in_flight.release(job)
            self._completer.hand_back(job, "the deadline passed before the attempt started")

    def abandon_unstarted(self, job: Job) -> None:
        """Fail a coroutine that was cancelled before its first step."""
        self._fail(job, RuntimeError("cancelled before it began"))

    def _begin(self, job: Job) -> bool:
        """Tell whether to run it: a job may be lost, or its deadline over, while it waits in line."""
        self._in_flight.begin(job)
        if job.lost and job.end():
            self._in_flight.release(job)
            self._completer.forget(job)
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


def _exit(handler: Handler, error: BaseException) -> RuntimeError:
    return RuntimeError(f"the handler {handler.where} ended with {error!r}")
