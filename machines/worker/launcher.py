"""The life of a worker process: start, work, quiet, deadline, hand back."""

import contextlib
import logging
import queue
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from machines.engine import Engine, errors

from .duties.clock_monitor import ClockMonitor
from .duties.due_work import DueWork, DueWorkLoop, LeaseRecovery, PartitionShares, TimerWaiter
from .duties.exclusive_duties import Duty, Periodic
from .execution.completer import Completer, Counters, OnFailure, ProgressReporter, ignore_failure
from .execution.executor import STOPPED, Executor
from .execution.in_flight import InFlightJobs
from .execution.output import OutputKeeper
from .helper_process import HelperProcess
from .intake.bell_listener import BellListener
from .intake.fetcher import Fetcher, QueueWaiter
from .intake.poll_loop import PollLoop
from .intake.served_queues import ServedQueues
from .job import Job
from .lease_renewal import InfoBuilder, LeaseRenewal
from .options import Options
from .registry import Registry

log = logging.getLogger(__name__)

LOOK = 1.0  # seconds between two looks whether a signal came
SETTLE = 2.0  # seconds that what has ended may take to be reported
STILL = 1.0  # seconds that a call of the heartbeat, the ticker or the like may take to come back

MAX_WAIT = 600.0  # seconds for which an exhausted worker waits for running jobs that have no deadline

Message = Literal["stop", "quiet", "work", "ended", "exhausted"]
Status = Literal["working", "blocked", "quiet", "stopping", "exhausted"]


class Launcher:
    """Puts the cast together. Threads: one takes jobs, ``concurrency`` run plain functions, one runs coroutines, one
    tells how jobs ended, one beats, one sweeps, one ticks; the caller's thread waits for signals and orders.
    ``duties``: what else it does now and then, each in a thread of that name.
    """

    def __init__(
        self,
        engine: Engine,
        registry: Registry,
        options: Options,
        *,
        version: str = "",
        url: str = "",
        duties: Mapping[str, Duty] | None = None,
        on_failure: OnFailure = ignore_failure,
    ) -> None:
        self._engine = engine
        self._options = options
        self._inbox: queue.SimpleQueue[Message] = queue.SimpleQueue()
        self.status: Status = "working"
        self.in_flight = InFlightJobs(options.concurrency)
        self.counters = Counters()
        self.served_queues = ServedQueues(engine, registry, options.queues)
        self._progress = ProgressReporter(engine)
        self._listener = BellListener(engine)
        self._queue_waiter = QueueWaiter(self._listener, options.wait_limit)
        self._fetcher = Fetcher(
            engine, self.served_queues, self._queue_waiter, options.id, rescan=options.rescan,
            progress_reporter=self._progress,
        )  # fmt: skip
        self._completer = Completer(
            engine, self.in_flight, self.counters, self._progress, backoff=options.backoff, on_failure=on_failure
        )
        self._output = OutputKeeper(engine, options.job_logs * 1024)
        self._executor = Executor(
            registry,
            self.in_flight,
            self._completer,
            output=self._output,
            on_exhausted=lambda: self._inbox.put("exhausted"),
        )
        info = InfoBuilder(
            options.id, self.served_queues, self.in_flight, version=version, counters=self.counters,
            status=self._show_status, find_blocker=self._executor.coroutines.find_blocker,
        )  # fmt: skip
        self._helper = HelperProcess(url, engine.keys.prefix, self.in_flight, options.helper_limit)
        self.lease_renewal = LeaseRenewal(
            engine, self.in_flight, info, pause=options.beat, on_order=self._obey, on_renewed=self._helper.beat
        )
        self._poll_loop = PollLoop(
            engine, self._fetcher, self.served_queues, self.in_flight, self._executor, options, on_jobs=self._wake_for
        )
        self._build_duties(engine, options, duties or {})

    def _build_duties(self, engine: Engine, options: Options, duties: Mapping[str, Duty]) -> None:
        """Build what runs now and then, each in a thread of its own."""
        self._shares = PartitionShares(engine, lambda: self.served_queues.machines, options.id)
        monitor = ClockMonitor(engine, options.id, on_jump=lambda: self._sweeping.wake())
        self.lease_recovery = LeaseRecovery(engine, pause=options.sweep, shares=self._shares, monitor=monitor)
        self._beating = Periodic("heartbeat", self.lease_renewal, backoff=options.backoff)
        self._sweeping = Periodic("sweeper", self.lease_recovery, backoff=options.backoff)
        self._timer_waiter = TimerWaiter(self._listener)
        self.due_work = DueWork(
            engine, pause=options.tick, shares=self._shares, waiter=self._timer_waiter, monitor=monitor
        )
        ticking = DueWorkLoop(self.due_work, self._timer_waiter, self._shares)
        self._ticking = Periodic("ticker", ticking, backoff=options.backoff)
        self._others = [Periodic(name, duty, backoff=options.backoff) for name, duty in duties.items()]

    # Orders. Safe to give from a signal handler.

    def stop(self) -> None:
        """Ask to end, as TERM does; a second time: now."""
        self._inbox.put("stop")

    def quiet(self) -> None:
        """Ask to take no further jobs; running jobs finish."""
        self._inbox.put("quiet")

    def work(self) -> None:
        """Ask to take jobs again."""
        self._inbox.put("work")

    def _obey(self, order: Mapping[str, Any]) -> None:
        """Obey an order that an operator left in Redis."""
        log.warning("told to %s by %s: %s", order["order"], order.get("actor") or "nobody", order.get("reason"))
        self._inbox.put(order["order"])

    def summary(self) -> str:
        """Summarize the outcomes of the jobs."""
        return str(self.counters)

    @property
    def is_exhausted(self) -> bool:
        """Whether it ended, or is about to, since too many of its handlers hang."""
        return self.status == "exhausted"

    def _show_status(self) -> Status:
        return "blocked" if self.status == "working" and self._executor.coroutines.is_blocked else self.status

    def run(self) -> None:
        """Work until it is stopped or exhausted, or until ``once`` or ``drain`` is reached."""
        taking = threading.Thread(target=self._take, name="fetcher", daemon=True)
        watching = (self._beating, self._sweeping, self._ticking, *self._others)
        for part in (self._output, self._listener, self._completer, self._executor, *watching, taking):
            part.start()
        message = self._listen()
        self._quiet(message)
        self._finish(taking, self._choose_deadline(message))
        taking.join(1.0)
        self._hand_back()

    def _listen(self) -> Message:
        while (message := self._receive()) not in ("stop", "ended", "exhausted"):
            if message == "quiet" and self.status == "working":
                log.warning("quiet: no further jobs, %d in hand", len(self.in_flight))
                self.status = "quiet"
                self._poll_loop.quiet()
                self._queue_waiter.interrupt()
            elif message == "work" and self.status == "quiet":
                log.warning("working again")
                self.status = "working"
                self._queue_waiter.listen()
                self._poll_loop.work()
            self._beating.wake()
        return message

    def _receive(self) -> Message:
        """Wait for a message. The kernel may give a signal to another thread, as after a CONT: Python handles it when
        this one wakes."""
        while True:
            with contextlib.suppress(queue.Empty):
                return self._inbox.get(timeout=LOOK)

    def _wake_for(self, jobs: Sequence[Job]) -> None:
        self._helper.add(jobs)
        if self.lease_renewal.needs_earlier_beat(jobs):
            self._beating.wake()

    def _take(self) -> None:
        self._poll_loop.run()
        self._inbox.put("ended")

    def _quiet(self, message: Message) -> None:
        """Take no further job. But for an end of all work, what nobody has begun with goes back at once, for others."""
        self.status = "exhausted" if message == "exhausted" else "stopping"
        self._poll_loop.stop()
        self._queue_waiter.interrupt()
        returned = 0 if message == "ended" else self._executor.return_waiting(0, STOPPED)
        if self.is_exhausted:
            names = ", ".join(sorted({job.src for job in list(self.in_flight.stuck)}))
            log.error("exhausted: %d handlers hang past their deadlines (%s); ending", len(self.in_flight.stuck), names)
        log.info(
            "%s: no further jobs, %d in hand, %d handed back", self.status, len(self.in_flight) - returned, returned
        )
        self._beating.wake()

    def _choose_deadline(self, message: Message) -> float:
        """Choose until when running jobs may finish, by the monotonic clock: for ever at the end of all work."""
        now = time.monotonic()
        if message == "exhausted":  # each up to its own deadline
            return max(
                (now + MAX_WAIT if job.ends is None else job.ends + SETTLE for job in self.in_flight.list_held()),
                default=now,
            )
        return now + self._options.grace if message == "stop" else float("inf")

    def _finish(self, taking: threading.Thread, until: float) -> None:
        """Let running jobs finish, up to the deadline or a further ``stop``. Where nobody asked, ``stop`` sets one."""
        asked = self.status == "stopping" and until < float("inf")
        while taking.is_alive() or len(self.in_flight):
            if self.in_flight.wait_empty(0.1):
                taking.join(0.1)
            if time.monotonic() >= until:
                return
            if self._is_asked_again():
                if asked:
                    return
                asked, until = True, min(until, time.monotonic() + self._options.grace)

    def _is_asked_again(self) -> bool:
        with contextlib.suppress(queue.Empty):
            while True:
                if self._inbox.get_nowait() == "stop":
                    return True
        return False

    def _hand_back(self) -> None:
        """Hand back jobs that are still in flight, as if they had not been taken."""
        left = [job for job in self.in_flight.list_held() if job.end()]  # from here on their handlers are not heard
        self._completer.stop(SETTLE)
        for job in left:
            job.abandon(STOPPED)
        answered = self._return(left)
        self._timer_waiter.interrupt()
        self._stop_together(self._beating, self._sweeping, self._ticking, *self._others)
        self._executor.stop()
        self._output.stop()
        self._progress.stop()
        self._listener.stop()
        self._helper.stop()
        if answered:
            self._leave()

    def _return(self, jobs: Sequence[Job]) -> bool:
        """Hand jobs back. Says whether Redis answers: where it does not, one call is waited for and no more."""
        for number, job in enumerate(jobs):
            try:
                self._engine.hand_back(job.taken)
            except errors.LeaseLost:
                continue  # finished in the same moment
            except errors.EngineUnavailable as error:
                left = len(jobs) - number
                log.warning("%d jobs could not be handed back: %s; their leases will end by themselves", left, error)
                return False
            except errors.SignalboxError as error:
                log.warning("handing back %s did not work: %s; its lease will end by itself", job, error)
            else:
                self.counters.add("returned")
        return True

    @staticmethod
    def _stop_together(*parts: Periodic) -> None:
        """Stop them together: one that waits for Redis must not be waited for in turn with the others."""
        until = time.monotonic() + STILL
        for part in parts:
            part.stop(0.0)
        for part in parts:
            part.stop(max(0.0, until - time.monotonic()))

    def _leave(self) -> None:
        try:
            self._engine.leave(self._options.id)
            self._shares.leave()
        except errors.SignalboxError as error:
            log.warning("leaving did not work: %s; the worker's row will go by itself", error)
