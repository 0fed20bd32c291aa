"""Reports finished jobs to Redis in batches, and the progress of those that run."""

import logging
import queue
import threading
from collections import Counter
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, NamedTuple

from machines.audit.redaction import MASK, Redactor
from machines.engine import Engine, arguments, errors, tracing
from machines.engine.jobs.lifecycle import MAX_NOTE
from machines.engine.storage import Storage
from machines.worker import failure
from machines.worker.job import HandBack, Job
from machines.worker.reconnect import Backoff, forget_connections

from .in_flight import InFlightJobs

log = logging.getLogger(__name__)

PAUSE = 0.1  # seconds between two rounds: a loop that reports each of its turns costs ten calls a second

Progress = tuple[float, float | None, str]
failures = logging.getLogger("signalbox.jobs")
"""Of handlers that failed: one record each, with ``machine``, ``instance``, ``job`` and ``attempt`` as its fields, and
``trace_id`` and ``span_id``, "" without a trace."""

MISSING_DELAY = 5_000  # ms a job whose handler is not here is set aside, so that it does not come straight back
MOST = 300  # ends in one report: some milliseconds, and jobs that end meanwhile are in the next one


class ProgressReporter:
    """Keeps each job's last word and sends it from a thread of its own, which only starts when there is one."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._latest: dict[Job, Progress] = {}
        self._woken = threading.Event()
        self._stopped = threading.Event()
        self._starting = threading.Lock()
        self._thread: threading.Thread | None = None

    def note(self, job: Job, done: float, total: float | None, note: str) -> None:
        """Raise BadInput for what no progress is."""
        arguments.encode_amount("done", done)
        if total is not None:
            arguments.encode_amount("total", total)
        arguments.check_text("note", note, MAX_NOTE)
        self._latest[job] = (done, total, note)
        if self._thread is None:
            self._start()
        self._woken.set()

    def flush(self, job: Job) -> None:
        """Send the job's last word now, before its attempt ends. Raises what the engine raises."""
        if self._latest and (last := self._latest.pop(job, None)) is not None:
            self._engine.progress(job.taken, *last)

    def forget(self, jobs: Iterable[Job]) -> None:
        """Forget the progress of finished jobs."""
        for job in jobs if self._latest else ():
            self._latest.pop(job, None)

    def stop(self) -> None:
        self._stopped.set()
        self._woken.set()

    def _start(self) -> None:
        with self._starting:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="progress", daemon=True)
                self._thread.start()

    def _run(self) -> None:
        while not self._stopped.is_set():
            self._woken.wait()
            self._woken.clear()
            for job in list(self._latest):
                self._send(job)
            self._stopped.wait(PAUSE)

    def _send(self, job: Job) -> None:
        if (last := self._latest.pop(job, None)) is None:
            return
        try:
            self._engine.progress(job.taken, *last)
        except errors.LeaseLost as error:
            job.abandon(error.why)
        except errors.EngineUnavailable:
            self._latest.setdefault(job, last)  # unless the handler has said something newer
            self._woken.set()
        except Exception:
            log.exception("%s: its progress cannot be shown", job)


class Counters:
    """Outcomes: completed, delayed and dead (failed attempts), lost, missing, returned."""

    def __init__(self) -> None:
        self.outcomes: Counter[str] = Counter()
        self._lock = threading.Lock()

    def add(self, outcome: str, count: int = 1) -> None:
        with self._lock:
            self.outcomes[outcome] += count

    @property
    def done(self) -> int:
        return self.outcomes["completed"]

    @property
    def failed(self) -> int:
        return self.outcomes["delayed"] + self.outcomes["dead"]

    def __str__(self) -> str:
        counted = [f"{count} {outcome}" for outcome, count in sorted(self.outcomes.items())]
        return ", ".join(counted) or "no jobs done"


class Completion(NamedTuple):
    job: Job
    result: Any


class Failure(NamedTuple):
    job: Job
    error: BaseException


class Return(NamedTuple):
    """``delay``: ms until another worker may take the job; ``outcome``: the counter it belongs to."""

    job: Job
    delay: int
    outcome: str


End = Completion | Failure | Return


OnFailure = Callable[[Job, BaseException, str], object]


def ignore_failure(job: Job, error: BaseException, place: str) -> None:
    """Report to nobody: a worker without Django has no signals."""


class Completer:
    """One thread that reports the jobs that have ended since its last report. It needs no timer: a lone end is reported
    immediately, and under load the calls grow as large as the time they take.

    Every call is fenced by the job's token, so it is safe to repeat it after a lost connection. It is repeated until
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
        on_failure: OnFailure = ignore_failure,
    ) -> None:
        """Report ends. ``on_failure``: called with each failed attempt once Redis has it, and the job's place."""
        self._on_failure = on_failure
        self._engine = engine
        self._storage = Storage(engine.client)
        self._in_flight = in_flight
        self._counters = counters
        self._progress = progress_reporter
        self._backoff = Backoff(backoff)
        self._ends: queue.SimpleQueue[End | None] = queue.SimpleQueue()
        self._again: list[End] = []
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="completer", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def complete(self, job: Job, result: Any) -> None:
        self._ends.put(Completion(job, result))

    def fail(self, job: Job, error: BaseException) -> None:
        if isinstance(error, HandBack):
            self._ends.put(Return(job, max(int(error.seconds * 1000), 0), "returned"))
        else:
            self._ends.put(Failure(job, error))

    def set_aside(self, job: Job) -> None:
        """Leave a job without a handler here to other workers."""
        log.warning("%s: no handler %r here; left for other workers", job, job.src)
        self._ends.put(Return(job, MISSING_DELAY, "missing"))

    def hand_back(self, job: Job, why: str) -> None:
        """Return a job as if this worker had not taken it."""
        job.abandon(why)
        self._ends.put(Return(job, 0, "returned"))

    def forget(self, job: Job) -> None:
        """Drop a job whose end Redis no longer accepts."""
        self._progress.forget([job])
        self._counters.add("lost")
        self._in_flight.lay_down([job])

    def stop(self, seconds: float) -> None:
        """Report what has ended so far, and give up what Redis does not answer."""
        self._stopping.set()
        self._ends.put(None)
        if self._thread.is_alive():
            self._thread.join(seconds)

    def _run(self) -> None:
        while True:
            ends, stopped = self._gather()
            try:
                self._report(ends)
            except Exception:
                log.exception("the worker itself failed; %d jobs come back when their leases end", len(ends))
                self._in_flight.lay_down([end.job for end in ends])
            if stopped:
                return self._give_up()

    def _gather(self) -> tuple[list[End], bool]:
        """Return the ends, at least one unless it is time to ask again, and whether this is the last round."""
        ends, self._again = self._again, []
        block, timeout = True, self._backoff.next() if ends else None
        while len(ends) < MOST:
            try:
                end = self._ends.get(block, timeout)
            except queue.Empty:
                return ends, False
            if end is None:
                return ends + self._remaining(), True
            if block and timeout is not None:
                self._stopping.wait(timeout)  # Redis is away: what ends does not make it come back sooner
            ends.append(end)
            block = False
        return ends, False

    def _remaining(self) -> list[End]:
        remaining = []
        while not self._ends.empty():
            if (end := self._ends.get_nowait()) is not None:
                remaining.append(end)
        return remaining

    def _report(self, ends: list[End]) -> None:
        done = [end for end in ends if isinstance(end, Completion)]
        if done:
            self._report_completions(done)
        for end in ends:
            if not isinstance(end, Completion):
                self._report_end(end)
        if self._again:
            forget_connections(self._engine)
        else:
            self._backoff.reset()

    def _report_completions(self, done: list[Completion]) -> None:
        try:
            self._write([job for job, _ in done])
            found: Iterable[Any] = self._engine.complete_many([(job.taken, result) for job, result in done])
        except errors.EngineUnavailable as error:
            found = [error] * len(done)
        except Exception as error:
            if len(done) > 1:  # one of them has a result like no other: each alone, then
                for end in done:
                    self._report_completions([end])
                return
            found = [error]
        outcomes = zip(done, found, strict=True)
        completed = [end.job for end, how in outcomes if not isinstance(how, Exception) or self._accept(end, how)]
        if not completed:
            return
        self._counters.add("completed", len(completed))
        self._progress.forget(completed)
        self._in_flight.lay_down(completed)

    def _accept(self, end: Completion, outcome: Exception) -> bool:
        """Tell whether the job is completed anyway; if not, repeat the report, abandon the job or report a failure."""
        job = end.job
        if isinstance(outcome, errors.EngineUnavailable):
            self._ask_again(end, outcome)
        elif isinstance(outcome, errors.LeaseLost):
            if job.asked and outcome.why == "gone":
                return True  # Redis had the first report, and only the answer was lost
            self._abandon(job, outcome)
        else:
            self.fail(job, outcome)  # a result that is no JSON, or one that the machine refuses
        return False

    def _report_end(self, end: Failure | Return) -> None:
        job = end.job
        try:
            outcome = self._report_failure(end) if isinstance(end, Failure) else self._report_hand_back(end)
        except errors.EngineUnavailable as error:
            self._ask_again(end, error)
            return
        except errors.LeaseLost as error:
            self._abandon(job, error)
            return
        except Exception:
            log.exception("%s: the worker itself failed; the job comes back when its lease ends", job)
            outcome = "lost"
        self._progress.forget([job])
        self._counters.add(outcome)
        self._in_flight.lay_down([job])

    def _ask_again(self, end: End, error: Exception) -> None:
        end.job.asked = True
        log.debug("%s: %s", end.job, error)
        self._again.append(end)

    def _abandon(self, job: Job, error: errors.LeaseLost) -> None:
        log.info("%s: %s", job, error)
        job.abandon(error.why)
        self.forget(job)

    def _give_up(self) -> None:
        for end in self._again:
            log.warning("%s: the worker stopped while Redis was away; its lease will end by itself", end.job)
            self.forget(end.job)

    def _report_failure(self, end: Failure) -> str:
        job, error = end
        self._flush(job)
        self._write([job])
        place = failure.report(self._engine, job, error)
        self._log_failure(job, error, place)
        self._on_failure(job, error, place)
        return place

    def _log_failure(self, job: Job, error: BaseException, place: str) -> None:
        """Log a failed attempt with its traceback, for Sentry and the like. Of a machine with sensitive fields,
        and where something was decrypted, the exception has no text, and no other one that it came from: the log must
        not show their values."""
        try:
            hidden = job.has_secrets or not Redactor(self._engine.sensitive(job.taken.machine)).open
        except errors.SignalboxError:
            hidden = True
        if hidden:
            kind, trace = type(error), error.__traceback__
            error = type(kind.__name__, (Exception,), {"__module__": kind.__module__})(MASK).with_traceback(trace)
        words = (job, job.attempt, job.attempts, place, type(error).__name__, failure.format_error(error))
        about = {name: getattr(job, name) for name in ("machine", "instance", "attempt")} | {"job": job.id}
        ids = tracing.read_ids(context := tracing.get_context(job.taken))
        write = partial(failures.error, "%s: attempt %s of %s failed, now %s: %s: %s", *words, exc_info=error)
        with tracing.attach(context):
            try:
                write(extra=about | ids)
            except KeyError:  # the records of the host have a trace_id of their own
                write(extra=about)

    def _write(self, jobs: list[Job]) -> None:
        """Send what handlers left to be written with the ends of their jobs, in one round trip."""
        if commands := [command for job in jobs for command in job.writes]:
            self._storage.commands(commands)

    def _flush(self, job: Job) -> None:
        try:
            self._progress.flush(job)
        except (errors.EngineUnavailable, errors.LeaseLost):
            raise
        except errors.SignalboxError as error:
            log.warning("%s: its progress cannot be shown: %s", job, error)

    def _report_hand_back(self, end: Return) -> str:
        self._engine.hand_back(end.job.taken, delay=end.delay)
        return end.outcome
