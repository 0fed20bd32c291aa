"""The life of a worker: start, work, quiet, deadline, hand back."""

from __future__ import annotations

import contextlib
import logging
import queue
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Literal

from machines.engine import Engine, errors
from machines.worker.crew import Crew, Loop
from machines.worker.doorbell import Doorbell
from machines.worker.fetcher import Fetcher
from machines.worker.hand import Hand
from machines.worker.heartbeat import Heartbeat
from machines.worker.line import Line
from machines.worker.options import Options
from machines.worker.periodic import Periodic
from machines.worker.processor import Processor
from machines.worker.registry import Registry
from machines.worker.routes import Routes
from machines.worker.row import Row
from machines.worker.sweeper import Sweeper
from machines.worker.ticker import Ticker

log = logging.getLogger(__name__)

Message = Literal["stop", "ended"]


class Launcher:
    """Puts the cast together. Threads: one takes jobs, ``concurrency`` run handlers, one runs coroutines,
    one beats, one sweeps, one ticks; the caller's thread waits for signals.
    """

    def __init__(self, engine: Engine, registry: Registry, options: Options, *, version: str = "") -> None:
        self._engine = engine
        self._options = options
        self._inbox: queue.SimpleQueue[Message] = queue.SimpleQueue()
        self._stopping = threading.Event()
        self.hand = Hand(options.concurrency)
        self.routes = Routes(engine, registry, options.queues)
        self._doorbell = Doorbell(engine, options.patience)
        self._fetcher = Fetcher(engine, self.routes, self._doorbell, options.id, rescan=options.rescan)
        self._loop = Loop()
        processor = Processor(engine, registry, self._loop.loop, stopping=self._stopping, backoff=options.backoff)
        self._crew = Crew(processor, self.hand)
        row = Row(options.id, self.routes, self.hand, version=version)
        self.heartbeat = Heartbeat(engine, self.hand, row, pause=options.beat)
        self.sweeper = Sweeper(engine, lambda: self.routes.machines, pause=options.sweep)
        self._beating = Periodic("heartbeat", self.heartbeat, backoff=options.backoff)
        self._sweeping = Periodic("sweeper", self.sweeper, backoff=options.backoff)
        self.ticker = Ticker(engine, lambda: self.routes.machines, pause=options.tick)
        self._ticking = Periodic("ticker", self.ticker, backoff=options.backoff)
        self._line = Line(
            engine, self._fetcher, self.routes, self.hand, self._crew, options, on_jobs=self._beating.wake
        )

    def stop(self) -> None:
        """Asks to end, as TERM does; a second time: now. Safe to call from a signal handler."""
        self._inbox.put("stop")

    def summary(self) -> str:
        """What came of the jobs, for people."""
        counted = [f"{count} {outcome}" for outcome, count in sorted(self._crew.outcomes.items())]
        return ", ".join(counted) or "no jobs done"

    def run(self) -> None:
        """Works until it is stopped, or until ``once`` or ``drain`` is reached."""
        taking = threading.Thread(target=self._take, name="fetcher", daemon=True)
        for part in (self._loop, self._crew, self._beating, self._sweeping, self._ticking, taking):
            part.start()
        asked = self._inbox.get() == "stop"
        self._quiet()
        self._finish(taking, until=time.monotonic() + self._options.grace if asked else None)
        taking.join(1.0)
        self._hand_back()

    def _take(self) -> None:
        self._line.run()
        self._inbox.put("ended")

    def _quiet(self) -> None:
        """No further job is taken."""
        log.info("stopping: no further jobs, %d in hand", len(self.hand))
        self._line.stop()
        self._doorbell.interrupt()

    def _finish(self, taking: threading.Thread, until: float | None) -> None:
        """Jobs in hand may finish, up to the deadline or a further ``stop``. Where there is none, ``stop`` sets one."""
        while taking.is_alive() or len(self.hand):
            if self.hand.wait_empty(0.1):
                taking.join(0.1)
            if until is not None and time.monotonic() >= until:
                return
            if self._asked_again():
                if until is not None:
                    return
                until = time.monotonic() + self._options.grace

    def _asked_again(self) -> bool:
        with contextlib.suppress(queue.Empty):
            while True:
                if self._inbox.get_nowait() == "stop":
                    return True
        return False

    def _hand_back(self) -> None:
        """What is still in hand goes back to its queue, as if it had not been taken."""
        self._stopping.set()
        for job in self.hand.held():
            job.lose("the worker stopped and handed it back")
            self._try(partial(self._engine.hand_back, job.taken), f"handing back {job}")
        for part in (self._beating, self._sweeping, self._ticking, self._crew, self._loop):
            part.stop()
        self._try(lambda: self._engine.leave(self._options.id), "leaving")
        self._doorbell.close()

    def _try(self, call: Callable[[], object], what: str) -> None:
        try:
            call()
        except errors.LeaseLost:
            pass  # finished in the same moment
        except errors.SignalboxError as error:
            log.warning("%s did not work: %s; its lease will end by itself", what, error)
