"""The background duty that writes a write buffer to the database. Any number of workers may run it at the same time."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from types import MappingProxyType

from django.db import DataError, Error, IntegrityError

from machines.conf.database_retry import DatabaseRetry
from machines.connections import is_spread
from machines.engine.errors import EngineFault, EngineUnavailable, SignalboxError
from machines.patterns import Batch, Lost, Stats, WriteBuffer
from machines.people import last_seen
from machines.statistics import recording, writing

log = logging.getLogger(__name__)

LIMIT = 500  # entries of one transaction
LEASE = 60.0  # s: far longer than a transaction takes

Make = Callable[[], WriteBuffer]

BUFFERS: Mapping[str, Make] = MappingProxyType({"statistics": recording.buffer, "last seen": last_seen.buffer})
"""What waits -> the buffer it waits in."""


def make_buffer_flushes() -> dict[str, BufferFlush]:
    """Return one duty for each buffer."""
    return {
        "statistics": BufferFlush(recording.buffer, writing.write, message="statistics wait for the database: %s"),
        "last seen": BufferFlush(
            last_seen.buffer,
            last_seen.write,
            gather=last_seen.GATHER,
            message="who was last seen waits for the database: %s",
        ),
    }


def waiting() -> dict[str, Stats]:
    """Return what is not written yet, by what it is; without a buffer that cannot be read, or whose shard of a cluster
    does not answer. Raises EngineUnavailable."""
    found = {}
    for name, make in BUFFERS.items():
        try:
            found[name] = make().stats()
        except EngineUnavailable as error:
            if not is_spread():
                raise
            log.warning("the buffer of %s does not answer: %s", name, error)
        except EngineFault as error:
            log.warning("the buffer of %s cannot be read: %s", name, error)
    return found


class BufferFlush:
    """``make``: gives the buffer; ``write``: writes a batch in one transaction, and one that it has
    written before not again. ``gather``: seconds that an entry waits for more to come.

    A database that is away costs a line in the log and nothing else: what was claimed goes back and waits.
    """

    EVERY = 3.0  # seconds

    def __init__(
        self,
        make: Make,
        write: Callable[[Batch], object],
        *,
        message: str,
        gather: float = 0.0,
    ) -> None:
        self._make = make
        self._write = write
        self._gather = gather
        self._database = DatabaseRetry(log, message)

    def once(self) -> bool:
        """Write one batch. Tell whether there may be more."""
        with self._database.around():
            return self._flush(self._make())
        return False

    def pause(self) -> float:
        return self.EVERY

    def _flush(self, buffer: WriteBuffer) -> bool:
        batch = buffer.claim(limit=LIMIT, lease=LEASE, gather=self._gather)
        if batch is None:
            return False
        try:
            self._write(batch)
        except Error as error:
            if not isinstance(error, (DataError, IntegrityError)):  # not for what is in it: the database is away
                _give_back(buffer, batch)
            raise
        try:
            buffer.settle(batch)
        except Lost as error:
            log.info("%s: it took longer than its lease, and is written once all the same", error)
        return True


def _give_back(buffer: WriteBuffer, batch: Batch) -> None:
    try:
        buffer.give_back(batch)
    except SignalboxError as error:
        log.debug("a batch comes back when its lease ends: %s", error)
