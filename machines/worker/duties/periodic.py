"""The loop around a periodic duty. It decides how long to wait."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Protocol, runtime_checkable

from machines.engine import errors

from ..reconnect import Backoff

log = logging.getLogger(__name__)


class Duty(Protocol):
    def once(self) -> bool:
        """Make one pass; tell whether it found work."""

    def pause(self) -> float:
        """Return seconds to wait after a pass that found none."""


@runtime_checkable
class Wakeable(Protocol):
    def on_call(self, wake: Callable[[], None]) -> None:
        """Register ``wake``, which ends the pause of the duty."""


class Periodic:
    """Runs a duty in a thread: at once again while it finds work, else after its pause."""

    def __init__(self, name: str, duty: Duty, *, backoff: float) -> None:
        self._name = name
        self._duty = duty
        self._backoff = Backoff(backoff)
        self._woken = threading.Condition()
        self._wanted = False
        self._stopped = False
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        if isinstance(duty, Wakeable):
            duty.on_call(self.wake)

    def start(self) -> None:
        self._thread.start()

    def wake(self) -> None:
        """Start the next pass now."""
        with self._woken:
            self._wanted = True
            self._woken.notify_all()

    def stop(self, seconds: float = 1.0) -> None:
        with self._woken:
            self._stopped = True
            self._woken.notify_all()
        self._thread.join(seconds)

    def _run(self) -> None:
        while not self._stopped:
            pause = self._pass()
            with self._woken:
                self._woken.wait_for(lambda: self._wanted or self._stopped, pause)
                self._wanted = False

    def _pass(self) -> float:
        """Make one pass; return how long to wait after it."""
        try:
            found = self._duty.once()
        except (errors.EngineUnavailable, errors.LibraryNotLoaded) as error:  # the loop that takes jobs says it
            log.debug("%s: %s", self._name, error)
            return self._backoff.next()
        except Exception:
            log.exception("%s failed; it goes on", self._name)
            return self._backoff.next()
        self._backoff.reset()
        return 0.0 if found else self._duty.pause()
