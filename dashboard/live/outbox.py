"""The frames that one socket has yet to receive.

Not a queue: for each topic it holds one delta, or the wish for a snapshot. A second delta before the
first went out makes a snapshot of both, taken when the socket can take it. So a slow client costs at most one entry for
each topic it watches, and what it gets is never older than its own slowness.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

from .topics import Topic


class Outbox:
    """``render`` gives a topic's snapshot as a frame, or None while there is none. ``owner``: whose socket it is."""

    def __init__(self, render: Callable[[Topic], str | None], *, notices: int, owner: str = "") -> None:
        self.owner = owner
        self._render = render
        self._pending: dict[Topic, str | None] = {}
        self._notices: deque[str] = deque()
        self._most_notices = notices
        self._status: str | None = None
        self._status_is_good = False
        self._ready = asyncio.Event()
        self._muted = False
        self.overflowed = False

    def delta(self, topic: Topic, frame: str) -> None:
        self._pending[topic] = None if topic in self._pending else frame
        self._ready.set()

    def snapshot(self, topic: Topic) -> None:
        self._pending[topic] = None
        self._ready.set()

    def forget(self, topic: Topic) -> None:
        self._pending.pop(topic, None)

    def status(self, frame: str, *, good: bool) -> None:
        """``good``: it says that what was sent is true, which a muted socket cannot be told."""
        self._status, self._status_is_good = frame, good
        self._ready.set()

    def notice(self, frame: str) -> None:
        """An error frame. When too many wait, ``overflowed`` is set and the frame dropped."""
        if len(self._notices) >= self._most_notices:
            self.overflowed = True
            return
        self._notices.append(frame)
        self._ready.set()

    def mute(self, muted: bool) -> None:
        """While muted no value goes out, only errors and bad news."""
        self._muted = muted
        self._ready.set()

    def __len__(self) -> int:
        return len(self._pending) + len(self._notices) + (self._status is not None)

    async def next(self) -> str:
        """The next frame to send; waits for one."""
        while True:
            frame = self._take()
            if frame is not None:
                return frame
            self._ready.clear()
            await self._ready.wait()

    def _take(self) -> str | None:
        if self._notices:
            return self._notices.popleft()
        if self._status is not None and not (self._muted and self._status_is_good):
            frame, self._status = self._status, None
            return frame
        while self._pending and not self._muted:
            topic = next(iter(self._pending))
            found = self._pending.pop(topic) or self._render(topic)
            if found is not None:
                return found
        return None
