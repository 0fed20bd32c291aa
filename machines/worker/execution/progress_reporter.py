"""Collects the progress that handlers report, and sends it to Redis."""

from __future__ import annotations

import logging
import threading

from machines.engine import Engine, arguments, errors
from machines.engine.jobs.lifecycle import MAX_NOTE
from machines.worker.job import Job

log = logging.getLogger(__name__)

PAUSE = 0.1  # seconds between two rounds: a loop that reports each of its turns costs ten calls a second

Progress = tuple[float, float | None, str]


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

    def forget(self, job: Job) -> None:
        """Forget the progress of a finished job."""
        if self._latest:
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
