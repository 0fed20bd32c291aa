"""Waits for new jobs while this worker is idle, and collects the bells that rang."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

from machines.engine.jobs.wakeups import Bell

from .bell_listener import BellListener

POLL = 0.25  # seconds between two looks while bells cannot be heard


@dataclass(slots=True)
class Heard:
    """What rang since the last look. ``queues``: root -> queues; ``gap``: bells may have been missed; ``news``: a
    definition was published."""

    queues: dict[str, set[str]] = field(default_factory=dict)
    gap: bool = False
    news: bool = False

    def __bool__(self) -> bool:
        return bool(self.queues) or self.gap or self.news


class QueueWaiter:
    """A bell says "look at this queue" and carries no work: losing one delays a job until the next look, never loses
    it."""

    def __init__(self, listener: BellListener, block: float) -> None:
        self._listener = listener
        self._block = block
        self._changed = threading.Condition()
        self._heard = Heard()
        self._interrupted = False
        listener.add(self)

    @property
    def hears(self) -> bool:
        """Whether no bell can be missed at the moment."""
        return self._listener.hears

    def hear(self, bell: Bell) -> None:
        if bell.queue is not None:
            with self._changed:
                self._heard.queues.setdefault(bell.root, set()).add(bell.queue)
                self._changed.notify_all()

    def hear_gap(self) -> None:
        with self._changed:
            self._heard.gap = True
            self._changed.notify_all()

    def hear_news(self) -> None:
        with self._changed:
            self._heard.news = True
            self._changed.notify_all()

    def watch(self, machines: list[str]) -> None:
        """Listen to the bells of these machines."""
        self._listener.watch(machines)

    def wait(self, most: float | None = None) -> None:
        """Return when something is heard, after the block time, ``most`` seconds, or when it is interrupted."""
        seconds = self._block if most is None else max(0.0, min(most, self._block))
        if not self.hears:
            seconds = min(seconds, POLL)
        with self._changed:
            self._changed.wait_for(lambda: self._interrupted or bool(self._heard), seconds)

    def collect(self) -> Heard:
        """Return what was heard since the last call."""
        with self._changed:
            heard, self._heard = self._heard, Heard()
        return heard

    def interrupt(self) -> None:
        """End all waiting, also one going on in another thread."""
        with self._changed:
            self._interrupted = True
            self._changed.notify_all()

    def listen(self) -> None:
        """Wait again from now on."""
        with self._changed:
            self._interrupted = False
