"""Runs one job's handler and tells the engine what came of it."""

from __future__ import annotations

import asyncio
import concurrent.futures
import logging
import threading
import traceback
from collections.abc import Callable
from typing import Any, TypeVar

from machines.engine import Engine, errors
from machines.worker.backoff import Backoff
from machines.worker.job import Job
from machines.worker.registry import Handler, Registry

log = logging.getLogger(__name__)

MISSING_DELAY = 5_000  # ms a job whose handler is not here is set aside, so that it does not come straight back
MAX_ERROR = 1_000  # characters of an exception's text that reach the machine as event.error

#: what ends a thread or an event loop unless it is caught; out of a handler it is a failed attempt and no more
EXITS = (SystemExit, KeyboardInterrupt, GeneratorExit, asyncio.CancelledError)

Answer = TypeVar("Answer")


class Processor:
    """Works on one job at a time in the thread that calls it; several threads share one processor.

    The delivery rule: a handler runs at least once, its effect on the machine happens exactly once.
    Completing is fenced by the job's token, so it is safe to say it again after a lost connection.
    """

    def __init__(
        self,
        engine: Engine,
        registry: Registry,
        loop: asyncio.AbstractEventLoop,
        *,
        stopping: threading.Event,
        backoff: float,
    ) -> None:
        self._engine = engine
        self._registry = registry
        self._loop = loop
        self._stopping = stopping
        self._backoff = backoff

    def process(self, job: Job) -> str:
        """Runs the job to its end here. Answers what came of it: completed, delayed, dead, lost or missing."""
        try:
            return self._process(job)
        except errors.LeaseLost as error:
            log.info("%s: %s", job, error)
            job.lose(error.why)
            return "lost"

    def _process(self, job: Job) -> str:
        handler = self._registry.get(job.src)
        if handler is None:
            log.warning("%s: no handler %r here; left for other workers", job, job.src)
            self._insist(job, lambda: self._engine.hand_back(job.taken, delay=MISSING_DELAY))
            return "missing"
        try:
            result = self._run(handler, job)
        except errors.LeaseLost as error:
            if error.job == job.id:
                raise
            return self._fail(job, error)
        except Exception as error:
            job.check()  # a handler that was told to stop may end any way it likes
            return self._fail(job, error)
        return self._complete(job, result)

    def _run(self, handler: Handler, job: Job) -> Any:
        if not handler.is_async:
            return _called(handler, job)
        future = asyncio.run_coroutine_threadsafe(_awaited(handler, job), self._loop)
        job.on_loss(future.cancel)
        try:
            return future.result()
        except concurrent.futures.CancelledError as error:
            job.check()
            raise RuntimeError(f"the handler {handler.where} cancelled itself") from error

    def _complete(self, job: Job, result: Any) -> str:
        try:
            self._insist(job, lambda: self._engine.complete(job.taken, result))
        except (errors.LeaseLost, errors.EngineUnavailable):
            raise
        except errors.SignalboxError as error:
            return self._fail(job, error)  # a result that is no JSON, or one that the machine refuses
        log.debug("%s: completed", job)
        return "completed"

    def _fail(self, job: Job, error: Exception) -> str:
        kind = type(error).__name__
        text = (str(error) or kind)[:MAX_ERROR]
        trace = "".join(traceback.format_exception(error))
        place = self._insist(job, lambda: self._engine.fail(job.taken, text, kind=kind, trace=trace))
        log.warning("%s: attempt %s of %s failed, now %s: %s: %s", job, job.attempt, job.attempts, place, kind, text)
        return place

    def _insist(self, job: Job, call: Callable[[], Answer]) -> Answer:
        """Makes the call until Redis answers it, the job is lost, or this worker stops."""
        backoff = Backoff(self._backoff)
        while True:
            try:
                return call()
            except errors.EngineUnavailable as error:
                job.check()
                if self._stopping.is_set():
                    raise errors.LeaseLost(job.id, why="the worker stopped while Redis was away") from error
                log.debug("%s: %s", job, error)
                self._stopping.wait(backoff.next())


def _called(handler: Handler, job: Job) -> Any:
    try:
        return handler.function(job)
    except EXITS as error:
        raise RuntimeError(f"the handler {handler.where} ended with {error!r}") from error


async def _awaited(handler: Handler, job: Job) -> Any:
    """A cancellation stays one: that is how a coroutine learns that its job is lost."""
    try:
        return await handler.function(job)
    except (SystemExit, KeyboardInterrupt, GeneratorExit) as error:
        raise RuntimeError(f"the handler {handler.where} ended with {error!r}") from error
