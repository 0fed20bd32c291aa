"""Builds every key of the patterns (``machines/patterns``), as ``keys.py`` builds those of machines.

A pattern's own beginning, its *root*, ends in a hash tag that holds the name: all that one call touches lies in one
slot of a cluster. What callers choose freely (a member, a subject, an entity) stands behind the tag. One class for each
pattern; its Lua half is in ``lua/patterns/pattern_keys.lua``. ``tests/engine/connection/test_pattern_keys.py`` pins
every literal.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LockKeys:
    """The keys of one lock."""

    root: str

    @property
    def holder(self) -> str:
        """string with PX: the token of the holder, as in redis-py's own Lock."""
        return f"{self.root}:holder"

    @property
    def last(self) -> str:
        """hash with PX: the last holder: fence (which only grows), token, owner, since and until (ms)."""
        return f"{self.root}:last"


@dataclass(frozen=True, slots=True)
class RecordKeys:
    """The keys of one collection of records."""

    root: str

    @property
    def last(self) -> str:
        """string: the highest generation of any deleted or expired record; it only grows."""
        return f"{self.root}:last"

    def one(self, key: str) -> str:
        """hash, with PX if its collection has a ttl: one record: value (JSON) and generation."""
        return f"{self.root}:r:{key}"


@dataclass(frozen=True, slots=True)
class SessionKeys:
    """The keys of one part of a container of sessions."""

    root: str

    def one(self, handle: str) -> str:
        """string with PX: one session: a line of numbers and the SHA-256 of its secret, then subject and state."""
        return f"{self.root}:s:{handle}"

    def of(self, subject: str) -> str:
        """zset with PX: the sessions of one subject by the ms of their end."""
        return f"{self.root}:of:{subject}"


@dataclass(frozen=True, slots=True)
class IdsKeys:
    """The keys of one generator of ids."""

    root: str

    @property
    def nodes(self) -> str:
        """zset: node number by the ms at which its ranges end; it stays when the holder changes."""
        return f"{self.root}:nodes"

    @property
    def holders(self) -> str:
        """hash: node number -> token of its holder."""
        return f"{self.root}:holders"

    @property
    def guard(self) -> str:
        """hash: run (which server process answered last), floor (ms no range begins before), longest (lease in ms)."""
        return f"{self.root}:guard"


@dataclass(frozen=True, slots=True)
class BlockKeys:
    """The key of one sequence of whole numbers."""

    root: str

    @property
    def next(self) -> str:
        """string: the first number that was not handed out."""
        return f"{self.root}:next"


@dataclass(frozen=True, slots=True)
class BufferKeys:
    """The keys of one part of a write buffer."""

    root: str

    @property
    def pending(self) -> str:
        """zset: entities by the ms of their first write that is in no batch."""
        return f"{self.root}:pending"

    @property
    def claims(self) -> str:
        """zset: batches by the ms from which they may be claimed again."""
        return f"{self.root}:claims"

    @property
    def held(self) -> str:
        """string: number of entries in all batches."""
        return f"{self.root}:held"

    @property
    def seq(self) -> str:
        """string: counter of entries and batches, a part of their ids."""
        return f"{self.root}:seq"

    @property
    def marks(self) -> str:
        """hash: the mark of each source; it moves with the writes."""
        return f"{self.root}:marks"

    def open(self, entity: str) -> str:
        """hash: writes to an entity since its last claim: c:<counter>, f:<field>; _: its id and sizes."""
        return f"{self.root}:e:{entity}"

    def batch(self, id: str) -> str:
        """hash: a claimed batch: token, takes, count, since, and the JSON of each entry under its number."""
        return f"{self.root}:b:{id}"


@dataclass(frozen=True, slots=True)
class DistinctKeys:
    """The keys of one count of unique members. ``day``: since 1970-01-01, UTC."""

    root: str

    def set(self, day: int, part: str) -> str:
        """set with PX: the members of that day, while they are few."""
        return f"{self.root}:set:{day}:{part}"

    def sketch(self, day: int, part: str) -> str:
        """HyperLogLog with PX: all members of that day."""
        return f"{self.root}:sketch:{day}:{part}"


@dataclass(frozen=True, slots=True)
class BoardKeys:
    """The keys of one scoreboard."""

    root: str

    def scores(self, period: str) -> str:
        """zset, with PX if the board has periods: members by score; `period` is its number since 1970, or "all"."""
        return f"{self.root}:scores:{period}"

    @property
    def epoch(self) -> str:
        """string with PX: of a board with decay, the ms from which scores are scaled, and the ms of writing it."""
        return f"{self.root}:epoch"

    @property
    def span(self) -> str:
        """zset: the union of several periods, within one call."""
        return f"{self.root}:span"


@dataclass(frozen=True, slots=True)
class StreamKeys:
    """The keys of one stream. A partition of a machine has its log at the same place below its own root."""

    root: str

    @property
    def log(self) -> str:
        """stream, capped: messages, each one field `body` (JSON); the groups of readers are part of it."""
        return f"{self.root}:log"

    @property
    def dead(self) -> str:
        """stream, capped: dead messages (delivered too often), each with its group."""
        return f"{self.root}:dead"


@dataclass(frozen=True, slots=True)
class TopicKeys:
    """The channel of one topic."""

    root: str

    @property
    def channel(self) -> str:
        """channel of publish/subscribe, sharded: messages (JSON) for current subscribers."""
        return f"{self.root}:channel"


@dataclass(frozen=True, slots=True)
class PaceKeys:
    """The key of one rate limit. It is the only key, so the limited subject is inside the tag too."""

    root: str

    @property
    def run(self) -> str:
        """string with PX: how far a subject of the limit is ahead of its rate."""
        return self.root


@dataclass(frozen=True, slots=True)
class WindowKeys:
    """The key of one limit in a fixed window."""

    root: str

    @property
    def count(self) -> str:
        """string with PX: number of calls of a subject in the current window."""
        return self.root


@dataclass(frozen=True, slots=True)
class PatternKeys:
    """The roots below one prefix, one method for each pattern."""

    prefix: str

    def pace(self, name: str, key: str) -> PaceKeys:
        return PaceKeys(f"{self.prefix}pace:{{{name}:{key}}}")

    def window(self, name: str, key: str) -> WindowKeys:
        return WindowKeys(f"{self.prefix}window:{{{name}:{key}}}")

    def lock(self, name: str) -> LockKeys:
        return LockKeys(f"{self.prefix}lock:{{{name}}}")

    def record(self, name: str) -> RecordKeys:
        return RecordKeys(f"{self.prefix}record:{{{name}}}")

    def session(self, name: str, part: int) -> SessionKeys:
        return SessionKeys(f"{self.prefix}session:{{{name}:{part}}}")

    def ids(self, name: str) -> IdsKeys:
        return IdsKeys(f"{self.prefix}ids:{{{name}}}")

    def block(self, name: str) -> BlockKeys:
        return BlockKeys(f"{self.prefix}block:{{{name}}}")

    def buffer(self, name: str, part: int) -> BufferKeys:
        return BufferKeys(f"{self.prefix}buffer:{{{name}:{part}}}")

    def distinct(self, name: str) -> DistinctKeys:
        return DistinctKeys(f"{self.prefix}distinct:{{{name}}}")

    def board(self, name: str) -> BoardKeys:
        return BoardKeys(f"{self.prefix}board:{{{name}}}")

    def stream(self, name: str) -> StreamKeys:
        return StreamKeys(f"{self.prefix}stream:{{{name}}}")

    def topic(self, name: str) -> TopicKeys:
        return TopicKeys(f"{self.prefix}topic:{{{name}}}")
