"""Reports finished jobs to Redis in batches."""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from machines.catalog.redaction import MASK, Redactor
from machines.engine import Engine, errors
from machines.engine.storage import Storage
from machines.worker.counters import Counters
from machines.worker.failure import format_error, format_trace, list_bases
from machines.worker.job import Job
from machines.worker.reconnect import forget_connections
from machines.worker.reconnect_backoff import Backoff
from machines.worker.registry import ForeignJob

from .in_flight import InFlightJobs
from .progress_reporter import ProgressReporter

log = logging.getLogger(__name__)

MISSING_DELAY = 5_000  # ms a job whose handler is not here is set aside, so that it does not come straight back
MOST = 300  # ends told in one go: some milliseconds, and those that end meanwhile go with the next

Done = tuple[Job, Any]


class Other(NamedTuple):
    """An end that is no completion: ``call`` says it to Redis and answers what became of the job."""

    job: Job
    call: Callable[[Job], str]


class Completer:
    """One thread that tells what has ended since it last told something. So it needs no timer: a lone end goes out at
    once, and under load the calls grow as large as the time they take.

    Every call is fenced by the job's token, so it is safe to say it again after a lost connection, and it is said until
    Redis answers, the job is lost, or this worker stops.
    """

    def __init__(
        self,
        engine: Engine,
        in_flight: InFlightJobs,
        counters: Counters,
        progress_reporter: ProgressReporter,
        *,
        backoff: float,
    ) -> None:
        self._engine = engine
        self._storage = Storage(engine.client)
        self._in_flight = in_flight
        self._counters = counters
        self._progress = progress_reporter
        self._backoff = Backoff(backoff)
        self._ends: queue.SimpleQueue[Done | Other | None] = queue.SimpleQueue()
        self._again: list[Done | Other] = []
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="completer", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def completed(self, job: Job, result: Any) -> None:
        self._ends.put((job, result))

    def failed(self, job: Job, error: BaseException) -> None:
        self._ends.put(Other(job, lambda job: self._fail(job, error)))

    def missing(self, job: Job) -> None:
        """There is no handler for it here."""
        log.warning("%s: no handler %r here; left for other workers", job, job.src)
        self._ends.put(Other(job, self._set_aside))

    def returned(self, job: Job, why: str) -> None:
        """It goes back as if it had not been taken."""
        job.lose(why)
        self._ends.put(Other(job, self._hand_back))

    def lost(self, job: Job) -> None:
        """Nobody wants to hear of it any more."""
        self._progress.forget(job)
        self._counters.add("lost")
        self._in_flight.lay_down([job])

    def stop(self, seconds: float) -> None:
        """Tells what has ended so far, and gives up what Redis does not answer."""
        self._stopping.set()
        self._ends.put(None)
        if self._thread.is_alive():
            self._thread.join(seconds)

    def _run(self) -> None:
        while True:
            ends, stopped = self._gather()
            try:
                self._tell(ends)
            except Exception:
                log.exception("the worker itself failed; %d jobs come back when their leases end", len(ends))
                self._in_flight.lay_down([end[0] for end in ends])
            if stopped:
                return self._give_up()

    def _gather(self) -> tuple[list[Done | Other], bool]:
        """What has ended, at least one unless it is time to ask again; and whether this is the last round."""
        ends, self._again = self._again, []
        block, timeout = True, self._backoff.next() if ends else None
        while len(ends) < MOST:
            try:
                end = self._ends.get(block, timeout)
            except queue.Empty:
                return ends, False
            if end is None:
                return ends + self._rest(), True
            if block and timeout is not None:
                self._stopping.wait(timeout)  # Redis is away: what ends does not make it come back sooner
            ends.append(end)
            block = False
        return ends, False

    def _rest(self) -> list[Done | Other]:
        rest = []
        while not self._ends.empty():
            if (end := self._ends.get_nowait()) is not None:
                rest.append(end)
        return rest

    def _tell(self, ends: list[Done | Other]) -> None:
        done = [end for end in ends if type(end) is tuple]
        if done:
            self._complete(done)
        for end in ends:
            if isinstance(end, Other):
                self._say(end)
        if self._again:
            forget_connections(self._engine)
        else:
            self._backoff.reset()

    def _complete(self, done: list[Done]) -> None:
        try:
            self._write([job for job, _ in done])
            found: Iterable[Any] = self._engine.complete_many([(job.taken, result) for job, result in done])
        except errors.EngineUnavailable as error:
            found = [error] * len(done)
        except Exception as error:
            if len(done) > 1:  # one of them has a result like no other: each alone, then
                for end in done:
                    self._complete([end])
                return
            found = [error]
        over = [end[0] for end, outcome in zip(done, found, strict=True) if self._over(end, outcome)]
        if not over:
            return
        self._counters.add("completed", len(over))
        for job in over:
            self._progress.forget(job)
        self._in_flight.lay_down(over)

    def _over(self, end: Done, outcome: Any) -> bool:
        """Whether the job is completed; sees to it if it is not."""
        if not isinstance(outcome, Exception):
            return True
        job = end[0]
        if isinstance(outcome, errors.EngineUnavailable):
            self._ask_again(end, outcome)
        elif isinstance(outcome, errors.LeaseLost):
            if job.asked and outcome.why == "gone":
                return True  # it was heard the first time, and only the answer was lost
            self._lose(job, outcome)
        else:
            self.failed(job, outcome)  # a result that is no JSON, or one that the machine refuses
        return False

    def _say(self, end: Other) -> None:
        job = end.job
        try:
            outcome = end.call(job)
        except errors.EngineUnavailable as error:
            self._ask_again(end, error)
            return
        except errors.LeaseLost as error:
            self._lose(job, error)
            return
        except Exception:
            log.exception("%s: the worker itself failed; the job comes back when its lease ends", job)
            outcome = "lost"
        self._progress.forget(job)
        self._counters.add(outcome)
        self._in_flight.lay_down([job])

    def _ask_again(self, end: Done | Other, error: Exception) -> None:
        end[0].asked = True
        log.debug("%s: %s", end[0], error)
        self._again.append(end)

    def _lose(self, job: Job, error: errors.LeaseLost) -> None:
        log.info("%s: %s", job, error)
        job.lose(error.why)
        self.lost(job)

    def _give_up(self) -> None:
        for job, _ in self._again:
            log.warning("%s: the worker stopped while Redis was away; its lease will end by itself", job)
            self.lost(job)

    # What is said, each to be made once

    def _fail(self, job: Job, error: BaseException) -> str:
        kind = type(error).__name__
        text, trace = format_error(error), format_trace(error)
        self._flush(job)
        self._write([job])
        retry = not isinstance(error, ForeignJob)
        place = self._engine.fail(job.taken, text, kind=kind, trace=trace, kinds=list_bases(error), retry=retry)
        said = self._said(job, text)
        log.warning("%s: attempt %s of %s failed, now %s: %s: %s", job, job.attempt, job.attempts, place, kind, said)
        return place

    def _said(self, job: Job, text: str) -> str:
        """For the log, where the error of a job of a machine with sensitive fields has no place."""
        try:
            return Redactor(self._engine.sensitive(job.taken.machine)).said(text)
        except errors.SignalboxError:
            return MASK

    def _write(self, jobs: list[Job]) -> None:
        """Sends what handlers left to be written with the ends of their jobs, in one round trip."""
        if commands := [command for job in jobs for command in job.writes]:
            self._storage.commands(commands)

    def _flush(self, job: Job) -> None:
        try:
            self._progress.flush(job)
        except (errors.EngineUnavailable, errors.LeaseLost):
            raise
        except errors.SignalboxError as error:
            log.warning("%s: its progress cannot be shown: %s", job, error)

    def _set_aside(self, job: Job) -> str:
        self._engine.hand_back(job.taken, delay=MISSING_DELAY)
        return "missing"

    def _hand_back(self, job: Job) -> str:
        self._engine.hand_back(job.taken)
        return "returned"
