"""A consumer group on the logs of machines, which ``Engine.emitted_logs`` lists."""

import contextlib
import os
import secrets
import socket

from machines.engine import Engine
from machines.engine.messages.emitted import Place

from .base import Gone
from .bus import AttachedStream, StreamPage

KEEP = 10_000  # entries a log keeps in any case; what the engine keeps
PAGE = 500  # entries of one log at a time
IDLE = 60.0  # seconds after which a reader that took entries and did not finish them is dead


class LogGroup:
    """One reader of a group. Not for several threads."""

    def __init__(self, engine: Engine, group: str) -> None:
        self._engine = engine
        self._emitted = engine.emitted_logs()
        self._group = group
        self._reader = f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(4)}"[-128:]
        self._streams: dict[Place, AttachedStream] = {}

    def stream(self, place: Place) -> AttachedStream:
        if place not in self._streams:
            self._streams[place] = AttachedStream(
                self._engine.client, self._emitted.root(place), prefix=self._engine.keys.prefix, most=KEEP
            )
        return self._streams[place]

    def read(self, place: Place) -> StreamPage:
        """Take a page of one log, which has to be finished or given back. Raises Gone, EngineFault."""
        return self.stream(place).take(self._group, self._reader, count=PAGE, idle=IDLE)

    def finish(self, place: Place, taken: StreamPage) -> None:
        if taken.entries:
            with contextlib.suppress(Gone):  # the group was dropped meanwhile
                self.stream(place).ack(self._group, *(id for id, _ in taken.entries))

    def give_back(self, place: Place, taken: StreamPage) -> None:
        if taken.entries:
            self.stream(place).give_back(self._group, self._reader, *(id for id, _ in taken.entries))
