"""One worker process under measurement: its command, the stamps of its jobs, its CPU."""

from __future__ import annotations

import os
import signal
import tempfile
import time
from array import array
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from benchmarks.process import list_family, read_cpu
from machines.conf.server import GuardedProcess

from .contenders import Contender
from .peers.stamps import SLOW

PATIENCE = 120.0  # seconds until all jobs must have started, and one more for every SLOWEST of them
SLOWEST = 100
LOOK = 0.002  # seconds between two looks for the stamps
GRACE = 15.0  # seconds a worker gets to end
SETTLED = 0.05  # of a core: a worker that has started and waits needs less


@dataclass(frozen=True, slots=True)
class Stamped:
    """The jobs in the order they started: (ns of the monotonic clock, what it noted); and ns of the worker's CPU."""

    jobs: list[tuple[int, int]]
    warm: int  # jobs that had started when ``cpu`` began to count
    cpu: int

    @classmethod
    def read(cls, path: Path) -> Self:
        found = array("q", path.read_bytes())
        jobs = sorted(zip(found[2::2], found[3::2], strict=True))
        return cls(jobs, len(jobs) // 10, found[1] - found[0])

    @property
    def moments(self) -> list[int]:
        return [moment for moment, _ in self.jobs]

    @property
    def fast(self) -> list[int]:
        return [moment for moment, noted in self.jobs if noted != SLOW]


class Worker:
    """Runs from ``with`` on. ``jobs``: how many it will be given until ``stamps`` are asked for."""

    def __init__(self, contender: Contender, url: str, jobs: int) -> None:
        self._contender = contender
        self._folder = tempfile.TemporaryDirectory(prefix="signalbox-bench-worker-")
        self._stamps = Path(self._folder.name) / "stamps"
        self._log = Path(self._folder.name) / "log"
        self._environment = {
            "BENCH_URL": url,
            "REDIS_URL": url,
            "BENCH_JOBS": str(jobs),
            "BENCH_STAMPS": str(self._stamps),
            "SIGNALBOX_HOME": self._folder.name,
        }
        self._patience = PATIENCE + jobs / SLOWEST
        self._process: GuardedProcess | None = None

    def __enter__(self) -> Self:
        environment = os.environ | self._contender.environment | self._environment
        with self._log.open("wb") as log:
            self._process = GuardedProcess(
                self._contender.work, output=log, cwd=self._contender.folder, env=environment, grace=GRACE
            )
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            self._process.stop()
        self._folder.cleanup()

    def stamps(self) -> Stamped:
        """Waits until all jobs have started."""
        deadline = time.monotonic() + self._patience
        while not self._stamps.exists():
            assert self._process is not None
            if self._process.poll() is not None or time.monotonic() > deadline:
                said = self._log.read_text(errors="replace").strip()[-2000:]
                raise RuntimeError(f"{self._contender.title} did not do all its jobs; it said:\n{said}")
            time.sleep(LOOK)
        return Stamped.read(self._stamps)

    def cpu(self) -> float:
        """Seconds of CPU the worker has used so far, with its threads and the processes it started."""
        assert self._process is not None
        return read_cpu(self._process.pid)

    def settle(self) -> None:
        """Waits until all its processes have started and have nothing to do."""
        deadline = time.monotonic() + self._patience
        before = self.cpu()
        while True:
            time.sleep(1.0)
            now = self.cpu()
            if before > 0.1 and now - before < SETTLED:
                return
            if time.monotonic() > deadline:
                raise RuntimeError(f"{self._contender.title} did not come to rest")
            before = now

    def halt(self) -> None:
        """Stops its processes where they are."""
        self._send(signal.SIGSTOP)

    def go_on(self) -> None:
        self._send(signal.SIGCONT)

    def _send(self, what: signal.Signals) -> None:
        assert self._process is not None
        for pid in list_family(self._process.pid):
            os.kill(pid, what)
