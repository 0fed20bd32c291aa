"""Patterns on Redis that machines are built with and that stand on their own, each one atomic call."""

from machines.engine.connection.client import connect

from .base import Changed, Full, Gone, Lost, Overflow, Taken
from .bus import Bus, Dead, Gap, Lag, Message, Stream, Subscription
from .cardinality import Cardinality, Count
from .cas import Record, Records
from .ids import Blocks, Decoded, Snowflakes, decode
from .locks import HeldLock, Holder, Lock, Locks
from .scoreboard import Place, Scoreboard
from .sessions import Held, Session, Sessions
from .throttle import Throttle, Verdict
from .write_buffer import Batch, Entry, LentBatch, Stats, Write, WriteBuffer

__all__ = [
    "Batch", "Blocks", "Bus", "Cardinality", "Changed", "Count", "Dead", "Decoded", "Entry", "Full", "Gap", "Gone",
    "Held", "HeldLock", "Holder", "Lag", "LentBatch", "Lock", "Locks", "Lost", "Message", "Overflow", "Place", "Record",
    "Records", "Scoreboard", "Session", "Sessions", "Snowflakes", "Stats", "Stream", "Subscription", "Taken",
    "Throttle", "Verdict", "Write", "WriteBuffer", "connect", "decode",
]  # fmt: skip
