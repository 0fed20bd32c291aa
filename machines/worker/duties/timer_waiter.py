"""Waits until the next due time, or until a bell says that something is due earlier."""

from __future__ import annotations

import threading

from machines.engine.jobs.wakeups import Bell

from ..intake.bell_listener import BellListener


class TimerWaiter:
    """Collects the due times that partitions announce. Losing one delays what is due by seconds."""

    def __init__(self, listener: BellListener | None = None) -> None:
        self._changed = threading.Condition()
        self._dues: dict[str, int] = {}  # root -> ms of the server's clock
        self._gap = False
        self._stopped = False
        if listener is not None:
            listener.add(self)

    def hear(self, bell: Bell) -> None:
        if bell.due is not None:
            with self._changed:
                self._dues[bell.root] = min(bell.due, self._dues.get(bell.root, bell.due))
                self._changed.notify_all()

    def hear_gap(self) -> None:
        with self._changed:
            self._gap = True
            self._changed.notify_all()

    def hear_news(self) -> None:
        """Ignore news of definitions: machines come with the next look."""

    def wait(self, seconds: float) -> None:
        """Return after ``seconds``, as soon as a bell rings, or when it is interrupted."""
        with self._changed:
            self._changed.wait_for(lambda: self._stopped or self._gap or bool(self._dues), seconds)

    def collect(self) -> tuple[dict[str, int], bool]:
        """Return the due times announced since the last call, and whether some may have been missed."""
        with self._changed:
            dues, self._dues = self._dues, {}
            gap, self._gap = self._gap, False
        return dues, gap

    def interrupt(self) -> None:
        """End all waiting, also in another thread."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()
