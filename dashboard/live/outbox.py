"""The frames that one socket has yet to receive.

Not a queue: for each topic it holds one delta, or the wish for a snapshot. A second delta before the
first went out makes a snapshot of both, taken when the socket can take it. So a slow client costs at most one entry for
each topic it watches, and what it gets is never older than its own slowness.

Frames leave it in one of two ways. Where the server offers a FrameWriter, ``flush`` writes them to the connection as
long as that takes them. All others, and those of a slow client, are taken by the socket's task with ``next``.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from .messages import Frame
from .topics import Topic

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Direct:
    """The connection of an outbox, where frames can be written to it at once. ``written`` is called after some were."""

    connection: FrameWriter
    written: Callable[[], None]


class Outbox:
    """``render`` gives a topic's snapshot as a frame, or None while there is none. ``owner``: whose socket it is."""

    def __init__(
        self,
        render: Callable[[Topic], Frame | None],
        *,
        notices: int,
        owner: str = "",
        direct: Direct | None = None,
        writer: OutboxWriter | None = None,
    ) -> None:
        self.owner = owner
        self._render = render
        self._pending: dict[Topic, Frame | None] = {}
        self._notices: deque[Frame] = deque()
        self._most_notices = notices
        self._status: Frame | None = None
        self._status_is_good = False
        self._ready = asyncio.Event()
        self._muted = False
        self.overflowed = False
        self._direct = direct
        self._writer = writer if direct is not None else None
        self._flushes = False  # a flush is under way
        self._taken = False  # the task sends a frame: a later one must not overtake it

    def delta(self, topic: Topic, frame: Frame) -> None:
        self._pending[topic] = None if topic in self._pending else frame
        self._announce()

    def snapshot(self, topic: Topic) -> None:
        self._pending[topic] = None
        self._announce()

    def forget(self, topic: Topic) -> None:
        self._pending.pop(topic, None)

    def status(self, frame: Frame, *, good: bool) -> None:
        """Announce the state of the live view. ``good``: the frame says that the values sent so far are
        current, so a muted socket does not get it."""
        self._status, self._status_is_good = frame, good
        self._announce()

    def notice(self, frame: Frame) -> None:
        """Add an error frame. When too many wait, ``overflowed`` is set and the frame dropped."""
        if len(self._notices) >= self._most_notices:
            self.overflowed = True
            return
        self._notices.append(frame)
        self._announce()

    def mute(self, muted: bool) -> None:
        """Mute or unmute the socket. While muted no value goes out, only errors and bad news."""
        self._muted = muted
        self._announce()

    def __len__(self) -> int:
        return len(self._pending) + len(self._notices) + (self._status is not None)

    def _announce(self) -> None:
        if self._writer is None or self._taken:
            self._ready.set()
        elif not self._flushes:
            self._flushes = True
            self._writer.add(self)

    def flush(self) -> None:
        """Write what waits, as far as the connection takes it at once; the rest is left to ``next``."""
        self._flushes = False
        direct = self._direct
        if direct is None or self._taken or not direct.connection.is_ready():
            self.hand_over()
            return
        wrote = False
        while (frame := self._take()) is not None:
            direct.connection.write(frame)
            wrote = True
            if len(self) and not direct.connection.is_ready():
                self.hand_over()
                break
        if wrote:
            direct.written()

    def hand_over(self) -> None:
        """Leave what waits to the socket's task."""
        self._ready.set()

    def detach(self) -> None:
        """Write nothing more directly: the socket ends."""
        self._direct = self._writer = None

    async def next(self) -> Frame:
        """Return the next frame to send; wait for one."""
        self._taken = False
        while True:
            frame = self._take()
            if frame is not None:
                self._taken = True
                return frame
            self._ready.clear()
            await self._ready.wait()

    def _take(self) -> Frame | None:
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


#: key in ``scope["extensions"]`` under which the server offers a FrameWriter for the connection
EXTENSION = "signalbox.frames"


class FrameWriter(Protocol):
    """Writes frames to one open connection without waiting."""

    def is_ready(self) -> bool:
        """Tell whether a frame may be written now. False while the client is slow, and once the socket closes."""

    def write(self, frame: Frame) -> None:
        """Hand a frame to the transport, which must be ready."""


class OutboxWriter:
    """``slice``: seconds it writes for before the event loop looks at anything else."""

    def __init__(self, slice: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._slice = slice
        self._clock = clock
        self._waiting: deque[Outbox] = deque()

    def add(self, outbox: Outbox) -> None:
        """Flush an outbox soon. It is added once until it was flushed."""
        if not self._waiting:
            asyncio.get_running_loop().call_soon(self._run)
        self._waiting.append(outbox)

    def _run(self) -> None:
        end = self._clock() + self._slice
        while self._waiting:
            self._flush(self._waiting[0])
            self._waiting.popleft()
            if self._clock() >= end:
                break
        if self._waiting:
            asyncio.get_running_loop().call_soon(self._run)

    @staticmethod
    def _flush(outbox: Outbox) -> None:
        """Leave an outbox whose connection fails to its task, which sees why; the others get theirs."""
        try:
            outbox.flush()
        except Exception:
            log.exception("a frame could not be written")
            outbox.hand_over()
