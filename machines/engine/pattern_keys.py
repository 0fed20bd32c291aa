"""Builds every key of the patterns (``machines/patterns``), as ``keys.py`` builds those of machines.

A pattern's own beginning, its *root*, ends in a hash tag that holds the name: all that one call touches lies in one
slot of a cluster. What callers choose freely (a member, a subject, an entity) stands behind the tag. One class for each
pattern; its Lua half is in ``lua/patterns/pattern_keys.lua``. ``tests/engine/connection/test_pattern_keys.py`` pins
every literal.
"""

from dataclasses import dataclass

from .keys import Key, KeyOf


@dataclass(frozen=True, slots=True)
class Root:
    """The beginning that all keys of one pattern share."""

    root: str


class LockKeys(Root):
    """The keys of one lock."""

    #: string with PX: the token of the holder, as in redis-py's own Lock
    holder = Key(":holder")
    #: hash with PX: the last holder: fence (which only grows), token, owner, since and until (ms)
    last = Key(":last")


class RecordKeys(Root):
    """The keys of one collection of records."""

    #: string: the highest generation of any deleted or expired record; it only grows
    last = Key(":last")
    #: hash, with PX if its collection has a ttl: one record: value (JSON) and generation
    one = KeyOf(":r:{key}")


class SessionKeys(Root):
    """The keys of one part of a container of sessions."""

    #: string with PX: one session: a line of numbers and the SHA-256 of its secret, then subject and state
    one = KeyOf(":s:{handle}")
    #: zset with PX: the sessions of one subject by the ms of their end
    of = KeyOf(":of:{subject}")


class IdsKeys(Root):
    """The keys of one generator of ids."""

    #: zset: node number by the ms at which its ranges end; it stays when the holder changes
    nodes = Key(":nodes")
    #: hash: node number -> token of its holder
    holders = Key(":holders")
    #: hash: run (which server process answered last), floor (ms no range begins before), longest (lease in ms)
    guard = Key(":guard")


class BlockKeys(Root):
    """The key of one sequence of whole numbers."""

    #: string: the first number that was not handed out
    next = Key(":next")


class BufferKeys(Root):
    """The keys of one part of a write buffer."""

    #: zset: entities by the ms of their first write that is in no batch
    pending = Key(":pending")
    #: zset: batches by the ms from which they may be claimed again
    claims = Key(":claims")
    #: string: number of entries in all batches
    held = Key(":held")
    #: string: counter of entries and batches, a part of their ids
    seq = Key(":seq")
    #: hash: the mark of each source; it moves with the writes
    marks = Key(":marks")
    #: hash: writes to an entity since its last claim: c:<counter>, f:<field>; _: its id and sizes
    open = KeyOf(":e:{entity}")
    #: hash: a claimed batch: token, takes, count, since, and the JSON of each entry under its number
    batch = KeyOf(":b:{id}")


class DistinctKeys(Root):
    """The keys of one count of unique members. ``day``: since 1970-01-01, UTC."""

    def set(self, day: int, part: str) -> str:
        """set with PX: the members of that day, while they are few."""
        return f"{self.root}:set:{day}:{part}"

    def sketch(self, day: int, part: str) -> str:
        """HyperLogLog with PX: all members of that day."""
        return f"{self.root}:sketch:{day}:{part}"


class BoardKeys(Root):
    """The keys of one scoreboard."""

    #: zset, with PX if the board has periods: members by score; `period` is its number since 1970, or "all"
    scores = KeyOf(":scores:{period}")
    #: string with PX: of a board with decay, the ms from which scores are scaled, and the ms of writing it
    epoch = Key(":epoch")
    #: zset: the union of several periods, within one call
    span = Key(":span")


class StreamKeys(Root):
    """The keys of one stream. A partition of a machine has its log at the same place below its own root."""

    #: stream, capped: messages, each one field `body` (JSON); the groups of readers are part of it
    log = Key(":log")
    #: stream, capped: dead messages (delivered too often), each with its group
    dead = Key(":dead")


class TopicKeys(Root):
    """The channel of one topic."""

    #: channel of publish/subscribe, sharded: messages (JSON) for current subscribers
    channel = Key(":channel")


class PaceKeys(Root):
    """The key of one rate limit. It is the only key, so the limited subject is inside the tag too."""

    #: string with PX: how far a subject of the limit is ahead of its rate
    run = Key("")


class WindowKeys(Root):
    """The key of one limit in a fixed window."""

    #: string with PX: number of calls of a subject in the current window
    count = Key("")


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
