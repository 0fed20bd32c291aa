"""Keeps what handlers log and print: the end of it is stored beside the job in Redis, where its page shows it live.

A job's own text is found by a context variable, which threads and coroutines have apart. Threads that a handler starts
itself are not heard.
"""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from contextvars import ContextVar
from typing import Any, TextIO

from machines.engine import Engine, errors
from machines.engine.keys import Keys
from machines.engine.storage import Storage
from machines.worker.job import Job

log = logging.getLogger(__name__)

PAUSE = 0.5  # seconds between two rounds of writing
DONE, RUNNING, FAILED = 3_600, 86_400, 30 * 86_400  # seconds for which the text stays, by what became of its attempt
_current: ContextVar[JobOutput | SharedOutput | None] = ContextVar("output of the job", default=None)
_guard = threading.Lock()  # one for all texts: each holds it for a few instructions


def read_output(storage: Storage, keys: Keys, root: str, job: str) -> str:
    """Return the text that is kept of a job. Raises EngineUnavailable."""
    found = storage.command("GET", keys.output(root, job))
    return found.decode("utf-8", "replace") if isinstance(found, bytes) else str(found or "")


class JobOutput:
    """The end of what the attempts of one job said, ``most`` characters of it. What its block says is added."""

    __slots__ = ("_keeper", "_most", "_text", "_token", "changed", "ended", "job")

    def __init__(self, keeper: OutputKeeper, job: Job, most: int) -> None:
        self.job, self._keeper, self._most, self._text = job, keeper, most, ""
        self.changed = self.ended = False

    def __enter__(self) -> JobOutput:
        self._token = _current.set(self)
        return self

    def __exit__(self, kind: object, error: object, trail: object) -> None:
        _current.reset(self._token)
        self.end(DONE if kind is None else FAILED)

    def add(self, text: str) -> None:
        text = (
            self.job.conceal(text)[-self._most :].encode("utf-8", "backslashreplace").decode()
        )  # names of files may be no UTF-8
        if not self._text:
            self._keeper.hold(self)  # not before: most jobs say nothing
        with _guard:
            if not self.ended:
                self._text = (self._text + text)[-self._most :]
                self.changed = True

    def read(self) -> str:
        """Return the text, which then counts as unchanged."""
        with _guard:
            self.changed = False
            return self._text

    def end(self, lasts: int) -> None:
        """Leave the text to be written with the end of the attempt, and hear no more; only the first time."""
        with _guard:
            if self._text and not self.ended:
                key = self._keeper.name_key(self.job)
                self.job.write(key, "SET", key, self._text, "EX", lasts)
            self.changed, self.ended = False, True
        if self._text:
            self._keeper.release(self.job)


class SharedOutput:
    """The outputs of jobs that one call of a handler runs: each has what the call says."""

    def __init__(self, outputs: Sequence[JobOutput]) -> None:
        self._outputs = outputs

    def add(self, text: str) -> None:
        for output in self._outputs:
            output.add(text)


class OutputKeeper:
    """Collects the output of the handlers of one worker, and writes it from a thread of its own."""

    def __init__(self, engine: Engine, most: int) -> None:
        """Keep ``most`` characters of each job; 0: none."""
        self._keys, self._storage, self._most = engine.keys, Storage(engine.client), most
        self._held: dict[Job, JobOutput] = {}
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

    def collect(self, job: Job, earlier: str = "") -> AbstractContextManager[JobOutput | None]:
        """Collect what the block says for a job, behind what earlier attempts said. It is written with the end of the
        attempt."""
        if not self._most:
            return nullcontext()
        output = JobOutput(self, job, self._most)
        if earlier:
            output.add(earlier)
        return output

    def hold(self, output: JobOutput) -> None:
        """Write an output now and then while its job runs."""
        self._held[output.job] = output
        if output.ended or output.job.ended:  # by its deadline, when there was nothing to end
            self.end(output.job)

    def release(self, job: Job) -> None:
        """Write the output of a job no more."""
        self._held.pop(job, None)

    @contextmanager
    def collect_together(self, jobs: Sequence[Job], earlier: str = "") -> Iterator[None]:
        """Collect what the block says for each of these jobs."""
        with ExitStack() as stack:
            outputs = [output for job in jobs if (output := stack.enter_context(self.collect(job, earlier)))]
            token = _current.set(SharedOutput(outputs) if outputs else None)
            try:
                yield
            finally:
                _current.reset(token)

    def end(self, job: Job) -> None:
        """End the output of an attempt that is over though its handler may go on: what it says now is not heard."""
        if (output := self._held.pop(job, None)) is not None:
            output.end(FAILED)

    def has_earlier(self, job: Job) -> bool:
        return self._most > 0 and job.attempt > 1

    def read_earlier(self, job: Job) -> str:
        """Return what earlier attempts said, "" where Redis does not answer."""
        if not self.has_earlier(job):
            return ""
        try:
            earlier = read_output(self._storage, self._keys, job.taken.root, job.id)
        except errors.SignalboxError:
            return ""
        return f"{earlier}\n-- attempt {job.attempt} --\n" if earlier else ""

    def name_key(self, job: Job) -> str:
        return self._keys.output(job.taken.root, job.id)

    def _run(self) -> None:
        while not self._stopped.wait(PAUSE):
            for output in list(self._held.values()):
                if output.changed and not output.job.lost:  # the text is of the attempt that has the job now
                    self._write(output)

    def _write(self, output: JobOutput) -> None:
        try:
            key = self.name_key(output.job)
            self._storage.commands([(key, ["SET", key, output.read(), "EX", RUNNING])])
        except errors.EngineUnavailable:
            output.changed = not output.ended
        except Exception as error:  # this thread writes for all jobs
            log.debug("the output of %s cannot be shown: %r", output.job, error)


class LogCollector(logging.Handler):
    """Adds records to the output of the job whose handler logs. What no other handler takes goes to
    ``logging.lastResort``, as it would without this one."""

    def __init__(self) -> None:
        super().__init__()
        self.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))

    def emit(self, record: logging.LogRecord) -> None:
        try:
            if (output := _current.get()) is not None:
                output.add(self.format(record) + "\n")
            last = logging.lastResort
            if last is not None and record.levelno >= last.level and not _is_taken(record):
                token = _current.set(None)  # it prints: that would be heard a second time
                try:
                    last.handle(record)
                finally:
                    _current.reset(token)
        except Exception:
            self.handleError(record)


def _is_taken(record: logging.LogRecord) -> bool:
    """Tell whether a handler of the project takes a record that came as far as the root logger."""
    logger: logging.Logger | None = logging.getLogger(record.name)
    while logger is not None:
        if not all(isinstance(handler, LogCollector) for handler in logger.handlers):
            return True
        logger = logger.parent
    return False


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
