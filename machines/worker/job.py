"""The job that a handler receives."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from machines.audit.redaction import MASK
from machines.engine import Job as TakenJob
from machines.engine import errors
from machines.engine.instances.encryption import holds_ciphertext

if TYPE_CHECKING:
    from .execution.in_flight import Bundle

# One for all jobs: each holds it for a few instructions, and a lock of its own for each costs more.
_guard = threading.Lock()

DAY = 86_400  # seconds


class Timeout(Exception):
    """An attempt was not over by its deadline."""


class HandBack(Exception):
    """Raised by a handler that cannot run a job now: it is ready again after ``seconds``, and the attempt does not
    count."""

    def __init__(self, seconds: float = 5) -> None:
        """Hand back for 0 seconds to a day. Raises ValueError for anything else."""
        if not 0 <= seconds <= DAY:
            raise ValueError(f"a job is handed back for 0 to {DAY} seconds, not {seconds:g}")
        super().__init__(f"handed back for {seconds:g} s")
        self.seconds = seconds


class ProgressSink(Protocol):
    """Where a job's progress is put."""

    def note(self, job: Job, done: float, total: float | None, note: str) -> None: ...


class Job:
    """One job while this worker holds it.

    A job is delivered at least once: a worker may die after the work and before saying so. Work that
    must not happen twice carries ``key``, which is the same for every attempt of this job.
    """

    __slots__ = (
        "_called",
        "_decrypt",
        "_expired",
        "_on_loss",
        "_plain",
        "_progress",
        "_secrets",
        "_why",
        "asked",
        "bundle",
        "ended",
        "ends",
        "has_secrets",
        "taken",
        "writes",
    )

    def __init__(
        self,
        taken: TakenJob,
        *,
        began: float | None = None,
        progress_reporter: ProgressSink | None = None,
        decrypt: Callable[..., Any] | None = None,
    ) -> None:
        """Hold a taken job. ``began``: when it was taken, by this process's monotonic clock; ``progress_reporter``
        takes its progress; ``decrypt``: as of the engine."""
        self.taken = taken
        self._decrypt = decrypt
        self._plain: dict[str, Any] | None = None  # its values that were looked at
        self._secrets: set[str] | None = None if decrypt is None else set()  # threads of a handler share it
        self.has_secrets = False  # whether anything was decrypted for the handler
        self.bundle: Bundle | None = None  # the jobs that the same call of a handler runs
        self.asked = False  # whether Redis was asked to end it and gave no answer
        self.writes: Sequence[tuple[str, Sequence[str | int]]] = ()  # see write()
        self.ended = False  # see end()
        self.ends: float | None = None  # the deadline by this process's monotonic clock
        if taken.timeout:
            self.ends = (time.monotonic() if began is None else began) + taken.timeout / 1000
        self._progress = progress_reporter
        self._why: str | None = None
        self._expired = False
        self._called: threading.Event | None = None
        self._on_loss: list[Callable[[], object]] | None = None

    def __str__(self) -> str:
        whose = f" for {self.taken.instance}" if self.taken.instance else ""
        return f"{self.taken.machine}/{self.taken.queue} {self.taken.id} ({self.taken.src}{whose})"

    # What it is

    @property
    def id(self) -> str:
        return self.taken.id

    @property
    def machine(self) -> str:
        return self.taken.machine

    @property
    def queue(self) -> str:
        return self.taken.queue

    @property
    def src(self) -> str:
        """The name its handler is registered under."""
        return self.taken.src

    @property
    def instance(self) -> str:
        """The instance that waits for it; empty for work nobody waits for."""
        return self.taken.instance

    @property
    def data(self) -> dict[str, Any]:
        """The instance's data at the moment the job was taken; empty without an instance."""
        return self._read("data", self.taken.data) or {}

    @property
    def payload(self) -> Any:
        """What was given along with the job: the ``input`` of the definition, or of ``enqueue``."""
        return self._read("input", self.taken.input)

    input = payload

    def _read(self, name: str, value: Any) -> Any:
        """Return a value decrypted. Raises EncryptionFailed, which fails the attempt."""
        if not value or self._decrypt is None:
            return value
        if self._plain is None:
            self._plain = {}
        if name not in self._plain:
            plain = value
            if holds_ciphertext(value):
                plain = self._decrypt(value, machine=self.machine, found=self._secrets)
                self.has_secrets = self.has_secrets or plain != value
            self._plain[name] = plain
        return self._plain[name]

    def conceal(self, text: str) -> str:
        """Return a text without the values that were decrypted for the handler: for what is stored of it."""
        for secret in sorted(self._secrets or (), key=len, reverse=True):
            text = text.replace(secret, MASK)
        return text

    def join(self, bundle: Bundle, first: Job) -> None:
        """Run this job together with others: what is stored of one conceals the secrets of all."""
        self.bundle, self._secrets = bundle, first._secrets

    @property
    def attempt(self) -> int:
        """Which attempt this is, from 1."""
        return self.taken.attempt

    @property
    def attempts(self) -> int:
        """How many there are at most."""
        return self.taken.attempts

    @property
    def key(self) -> str:
        """The idempotency key of this job: unique to it, equal for all its attempts."""
        return self.taken.key

    @property
    def actor(self) -> str:
        """Who to name in the history of what the handler fires itself."""
        return f"job {self.taken.key}"

    # How long it may go on

    @property
    def deadline(self) -> int | None:
        """When this attempt has to be over, in ms since the epoch by the server's clock; None without a timeout."""
        return self.taken.deadline or None

    @property
    def remaining(self) -> float | None:
        """Seconds until the deadline, 0 when it is over; None without a timeout. No clock that is set counts here."""
        return None if self.ends is None else max(self.ends - time.monotonic(), 0.0)

    @property
    def lost(self) -> bool:
        """True once the job is no longer this worker's: withdrawn, taken back or handed back."""
        return self._why is not None

    @property
    def expired(self) -> bool:
        """True once its deadline is over."""
        return self._expired or (self.ends is not None and time.monotonic() >= self.ends)

    @property
    def cancelled(self) -> bool:
        """True once nothing the handler does can count any more: the job is lost, or its deadline over."""
        return self._why is not None or self.expired

    def check(self) -> None:
        """Raise ``LeaseLost`` if the job is lost, ``Timeout`` past its deadline. A long handler calls it between
        its steps."""
        if self._why is not None:
            raise errors.LeaseLost(self.id, why=self._why)
        if self.expired:
            raise self.late()

    def late(self) -> Timeout:
        return Timeout(f"not done after {self.taken.timeout / 1000:g} s")

    def wait(self, seconds: float) -> None:
        """Sleep, and raise what ``check`` does as soon as there is a reason to.

        For plain functions. A coroutine awaits ``asyncio.sleep`` and is cancelled when its job is.
        """
        left = self.remaining
        self._event().wait(max(seconds if left is None else min(seconds, left), 0.0))
        self.check()

    # What it says

    def progress(self, done: float, total: float | None = None, note: str = "") -> None:
        """Say how far the work has come: pages show it live. From plain functions and coroutines, as often as
        you like; what is said in quick succession goes out as its last value. Raises as ``check`` does."""
        self.check()
        if self._progress is not None:
            self._progress.note(self, done, total, self.conceal(note))

    def write(self, key: str, *command: str | int) -> None:
        """Send a Redis command before this attempt's end is reported, together with those of other jobs. It may be
        sent twice, so it has to be one that is harmless then; ``key`` routes it."""
        with _guard:  # what the deadline of the job ends may write at the same time
            self.writes = [*self.writes, (key, command)]

    # Called by the worker

    def abandon(self, why: str) -> None:
        """Give the job up; only the first ``why`` counts. Run what ``on_loss`` left."""
        with _guard:
            if self._why is not None:
                return
            self._why = why
        self._call_off()

    def expire(self) -> None:
        """End the job at its deadline. Run what ``on_loss`` left."""
        with _guard:
            self._expired = True
        self._call_off()

    def end(self) -> bool:
        """End the attempt; True for the first who says so, and only that one tells Redis how."""
        with _guard:
            if self.ended:
                return False
            self.ended = True
            return True

    def on_loss(self, call: Callable[[], object]) -> None:
        """Run ``call`` when the job is lost or expires, or now if it is or has."""
        with _guard:
            if self._why is None and not self._expired:
                self._on_loss = [*(self._on_loss or ()), call]
                return
        call()

    def _call_off(self) -> None:
        with _guard:
            calls, self._on_loss = self._on_loss or (), None
            if self._called is not None:
                self._called.set()
        for call in calls:
            call()

    def _event(self) -> threading.Event:
        with _guard:
            if self._called is None:
                self._called = threading.Event()
                if self._why is not None or self._expired:
                    self._called.set()
            return self._called
