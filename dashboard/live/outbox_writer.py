"""Writes what outboxes hold straight to their connections: one callback of the event loop for all of them.

A task for each socket that wakes, sends and sleeps again costs several times the write itself. Where the ASGI server
offers the extension ``EXTENSION`` (see ``sockets.frame_writer``), an outbox is flushed here instead; its task sleeps
until the connection takes no more.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from .frames import Frame
    from .outbox import Outbox

log = logging.getLogger(__name__)
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
