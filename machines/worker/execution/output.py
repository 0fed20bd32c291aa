"""Keeps what handlers log and print: the end of it is stored beside the job in Redis, where its page shows it live.

A job's own text is found by a context variable, which threads and coroutines have apart. Threads that a handler starts
itself are not heard.
"""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TextIO

from machines.engine import Engine, errors
from machines.engine.keys import Keys
from machines.engine.storage import Storage
from machines.worker.job import Job

log = logging.getLogger(__name__)

PAUSE = 0.5  # seconds between two rounds of writing
DONE, RUNNING, FAILED = 3_600, 86_400, 30 * 86_400  # seconds for which the text stays, by what became of its attempt
_current: ContextVar[JobOutput | None] = ContextVar("output of the job", default=None)


def read_output(storage: Storage, keys: Keys, root: str, job: str) -> str:
    """Return the text that is kept of a job. Raises EngineUnavailable."""
    found = storage.command("GET", keys.output(root, job))
    return found.decode("utf-8", "replace") if isinstance(found, bytes) else str(found or "")


class JobOutput:
    """The end of what the attempts of one job said, ``most`` characters of it."""

    def __init__(self, job: Job, most: int) -> None:
        self.job, self._most, self._text, self._lock = job, most, "", threading.Lock()
        self.changed = self.ended = False

    def add(self, text: str) -> None:
        with self._lock:
            self._text = (self._text + text)[-self._most :]
            self.changed = not self.ended

    def read(self) -> str:
        """Return the text, which then counts as unchanged."""
        with self._lock:
            self.changed = False
            return self._text


class OutputKeeper:
    """Collects the output of the handlers of one worker, and writes it from a thread of its own."""

    def __init__(self, engine: Engine, most: int) -> None:
        """Keep ``most`` characters of each job; 0: none."""
        self._keys, self._storage, self._most = engine.keys, Storage(engine.client), most
        self._held: set[JobOutput] = set()
        self._stopped = threading.Event()
        self._restore: list[tuple[str, TextIO]] = []
        self._handler = LogCollector()

    def start(self) -> None:
        if not self._most:
            return
        logging.getLogger().addHandler(self._handler)
        for name in ("stdout", "stderr"):
            stream = getattr(sys, name)
            self._restore.append((name, stream))
            setattr(sys, name, Tee(stream))
        threading.Thread(target=self._run, name="output", daemon=True).start()

    def stop(self) -> None:
        self._stopped.set()
        logging.getLogger().removeHandler(self._handler)
        while self._restore:
            setattr(sys, *self._restore.pop())

    @contextmanager
    def collect(self, job: Job) -> Iterator[None]:
        """Collect what the block says for a job. What it said is written with the end of the attempt."""
        if not self._most:
            yield
            return
        output = JobOutput(job, self._most)
        if job.attempt > 1:
            output.add(self._read_earlier(job))
        self._held.add(output)
        token, lasts = _current.set(output), FAILED
        try:
            yield
            lasts = DONE
        finally:
            _current.reset(token)
            self._held.discard(output)
            output.ended = True
            if text := output.read():
                job.write(*self._make_write(output, text, lasts))

    def _read_earlier(self, job: Job) -> str:
        """Return what earlier attempts said, "" where Redis does not answer."""
        try:
            earlier = read_output(self._storage, self._keys, job.taken.root, job.id)
        except errors.SignalboxError:
            return ""
        return f"{earlier}\n-- attempt {job.attempt} --\n" if earlier else ""

    def _make_write(self, output: JobOutput, text: str, lasts: int) -> tuple[str, str, str, str, str, int]:
        taken = output.job.taken
        key = self._keys.output(taken.root, taken.id)
        return key, "SET", key, text, "EX", lasts

    def _run(self) -> None:
        while not self._stopped.wait(PAUSE):
            for output in list(self._held):
                if output.changed:
                    self._write(output)

    def _write(self, output: JobOutput) -> None:
        try:
            key, *command = self._make_write(output, output.read(), RUNNING)
            self._storage.commands([(key, command)])
        except errors.EngineUnavailable:
            output.changed = not output.ended
        except errors.SignalboxError as error:
            log.debug("the output of %s cannot be shown: %s", output.job, error)


class LogCollector(logging.Handler):
    """Adds records to the output of the job whose handler logs."""

    def __init__(self) -> None:
        super().__init__()
        self.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))

    def emit(self, record: logging.LogRecord) -> None:
        if (output := _current.get()) is not None:
            try:
                output.add(self.format(record) + "\n")
            except Exception:
                self.handleError(record)


class Tee:
    """A stream that also adds what is printed to the output of the job whose handler prints."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        if (output := _current.get()) is not None:
            output.add(text)
        return self._stream.write(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)
