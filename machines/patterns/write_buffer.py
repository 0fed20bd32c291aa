"""Writes are gathered in Redis and reach a slower store in batches, each exactly once. Needs Redis and no Django.

    seen = WriteBuffer(engine.client, "seen", prefix=engine.keys.prefix)
    seen.add(f"user:{user.pk}", counters={"requests": 1}, fields={"at": time.time()})
    ...
    seen.flush(write_rows)  # write_rows(batch) gets the entries that waited longest

Counters add up, and for a field the last write wins. ``entry.id`` identifies the writes that were combined. ``claim``
lends a batch to one flusher for a time; ``settle`` marks it as written.

**Promises.** Once ``add`` has returned, a write is handed out until some flusher has settled it. A flusher that dies
halfway has only borrowed its batch, which comes again with the same id, the same entries and the same ids of entries.
Adding, claiming and settling are one call each, all or nothing. The oldest entries come first, so none starves.
Counters are exact, below 2^53. An entity that is written while a batch holds it gets a new entry.

**It cannot promise** that a batch comes once: if a flusher wrote it and died before ``settle``, another flusher gets
it. A receiver that stores the ids of entries in the same transaction still writes each entry once, even if Redis
returns to an older file: an id identifies the writes to an entity that began with one write, and contains its time. Nor
can it keep what Redis loses with its memory; that depends on its persistence.
"""

import hashlib
import json
import random
import secrets
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from machines.engine.connection.calls import Arg
from machines.engine.connection.client import Client
from machines.engine.connection.replies import Status
from machines.engine.errors import BadInput, EngineFault
from machines.engine.keys import PREFIX, choose_partition

from . import base
from .base import OK, Changed, Full, Lost, Overflow, Pattern

MAX_PARTITIONS = 64
MAX_MOST = 10_000_000
MAX_WRITES = 1_000  # of one call
MAX_NAMES = 20_000  # counters and fields of an entry
MAX_VALUE = 65_536  # bytes of JSON of one field
MAX_MARK = 1_048_576  # bytes
MAX_LEASE = 86_400  # s
MAX_COUNT = base.MAX_EXACT - 1
REFUSALS = (Status.CONFLICT, Status.FULL, Status.OVERFLOW, Status.FAULT)

Counts = Mapping[str, int]
Marks = Mapping[str, tuple[str | None, str]]


@dataclass(frozen=True, slots=True)
class Write:
    """Changes of one entity: amounts to add to its counters, and JSON values of its fields."""

    entity: str
    counters: Counts = field(default_factory=dict)
    fields: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Entry:
    """All writes to one entity between two claims. ``since``: ms of the first write; ``written``: ms of the last
    write to each field."""

    id: str
    entity: str
    since: int
    counters: dict[str, int]
    fields: dict[str, Any]
    written: dict[str, int]


@dataclass(frozen=True, slots=True)
class Batch:
    """A batch lent to one flusher until ``ends``, ms. ``takes``: how often it was claimed, this time included."""

    id: str
    part: int
    token: str
    takes: int
    ends: int
    entries: list[Entry]


@dataclass(frozen=True, slots=True)
class LentBatch:
    """A batch that is being written. ``since``: ms of the oldest of its first writes; ``again``: ms at which it may
    be claimed again."""

    id: str
    part: int
    count: int
    takes: int
    since: int
    again: int


@dataclass(frozen=True, slots=True)
class Stats:
    """The size of a buffer. ``pending`` entries wait for their first claim and ``held`` ones are in ``batches``;
    ``lent``: the batches that come next, 50 of a part at most. ``oldest``: seconds since the first write that is not
    settled."""

    pending: int = 0
    held: int = 0
    batches: int = 0
    oldest: float = 0.0
    lent: list[LentBatch] = field(default_factory=list)


class WriteBuffer(Pattern):
    """A buffer of writes. ``partitions``: parts of the buffer, an entity always in the same one; ``most``: entries
    of each."""

    def __init__(
        self, redis: Client, name: str, *, prefix: str = PREFIX, partitions: int = 1, most: int = 100_000
    ) -> None:
        super().__init__(redis, prefix)
        self.name = base.check_name(name, "a write buffer's name")
        self.partitions = base.check_whole(partitions, "partitions", 1, MAX_PARTITIONS)
        self._most = base.check_whole(most, "most", 1, MAX_MOST)

    def add(
        self,
        entity: str,
        *,
        counters: Counts | None = None,
        fields: Mapping[str, Any] | None = None,
        now: int | None = None,
    ) -> None:
        """Add a write in one call. ``now``: ms since the epoch, in place of the server's clock; a write older than a
        field's own does not replace it. Raises BadInput, Overflow or Full, and nothing is changed."""
        words = _words(Write(entity, _check_mapping(counters), _check_mapping(fields)))
        self._add(choose_partition(entity, self.partitions), [base.check_now(now), self._most, 0, *words])

    def add_many(
        self, writes: Iterable[Write], *, marks: Marks | None = None, part: int | None = None, now: int | None = None
    ) -> None:
        """Add at most a thousand writes, with one call for each part. In each part, all of them are added or none.

        ``marks``: name -> (the last text seen or None, the new text). They record how far a source was read and change
        together with the writes. If a mark no longer has the text last seen, nothing is added, and Changed is raised.
        So a source that is read twice is added once. Marks belong to one part; if there are several, ``part`` names it,
        and the writes go there as well.
        """
        if part is not None:
            self._check_part(part)
        elif marks and self.partitions > 1:
            raise BadInput(f"marks are of one of the {self.partitions} parts: say which by part=", code="SB402")
        sent: dict[int, list[Arg]] = {}
        for count, write in enumerate(_check_values(writes, "writes")):
            if count == MAX_WRITES:
                raise BadInput(f"one call takes {MAX_WRITES} writes at most", code="SB402")
            words, home = _words(write), choose_partition(write.entity, self.partitions) if part is None else part
            sent.setdefault(home, []).extend(words)
        if marks:
            sent.setdefault(part or 0, [])
        moving, moment = _marks({} if marks is None else marks), base.check_now(now)
        for home, words in sent.items():
            self._add(home, [moment, self._most, len(marks or {}), *moving, *words])

    def marks(self, names: Iterable[str] | None = None, *, part: int = 0) -> dict[str, str]:
        """Return name -> text of these marks that are set, or of all. Raises EngineUnavailable."""
        key = self._root_of(self._check_part(part)).marks
        if names is None:
            found: dict[str, str] = self._caller.command("HGETALL", key)
            return found
        wanted = [base.check_key(name, "a mark") for name in _check_values(names, "names")]
        texts = self._caller.command("HMGET", key, *wanted) if wanted else []
        return {name: text for name, text in zip(wanted, texts, strict=True) if text is not None}

    def claim(
        self,
        *,
        limit: int = 100,
        lease: float = 30.0,
        gather: float = 0.0,
        part: int | None = None,
        now: int | None = None,
    ) -> Batch | None:
        """Claim a batch for ``lease`` seconds, or None: one whose lease ran out, whatever its size, else the oldest
        ``limit`` entries, of those first written ``gather`` seconds ago. Without ``part`` all are asked in turn, from
        any on.

        A batch that was claimed more than five times is retried with growing pauses of up to ten minutes.
        """
        words = (
            base.check_now(now),
            base.check_whole(limit, "limit", 1, 1_000),
            base.check_seconds(lease, "lease", most=MAX_LEASE),
            base.check_seconds(gather, "gather", most=MAX_LEASE, least=0),
        )
        parts = list(range(self.partitions)) if part is None else [self._check_part(part)]
        first = random.randrange(len(parts))  # noqa: S311  spreading load, not a secret
        for home in parts[first:] + parts[:first]:
            reply = self._ask("sb_buffer_claim", self._root_of(home).root, *words, secrets.token_hex(8))
            if len(reply) > 1:
                _, id, token, takes, ends, *entries = reply
                return Batch(id, home, token, int(takes), int(ends), [_entry(text) for text in entries])
        return None

    def settle(self, batch: Batch) -> None:
        """Mark a batch as written, so that it comes no more. Raises Lost where another flusher has claimed or
        settled it."""
        self._end("settle", batch, None)

    def give_back(self, batch: Batch, *, now: int | None = None) -> None:
        """Return a batch that was not tried: it may be claimed at once, and this claim does not count. Raises Lost."""
        self._end("back", batch, now)

    def flush(
        self, hand: Callable[[Batch], object], *, limit: int = 100, lease: float = 30.0, gather: float = 0.0
    ) -> int:
        """Claim a batch, call ``hand`` with it and settle it; return the number of its entries, 0 for none.

        An exception of ``hand`` is raised to the caller and leaves the batch to its lease. Raises Lost where the lease
        ran out and another flusher has the batch: ``hand`` has written it, and the other writes it again.
        """
        if not callable(hand):
            raise BadInput(f"hand is a function of a batch, not {hand!r:.80}", code="SB408")
        batch = self.claim(limit=limit, lease=lease, gather=gather)
        if batch is None:
            return 0
        hand(batch)
        self.settle(batch)
        return len(batch.entries)

    def size(self) -> int:
        """Count the entries that are not settled."""
        found = self.stats()
        return found.pending + found.held

    def stats(self, *, now: int | None = None) -> Stats:
        """Read the size of the buffer in one round trip."""
        moment = base.check_now(now)
        roots = [self._root_of(part).root for part in range(self.partitions)]
        return _stats(self._ask_all([("sb_buffer_look", root, (moment,)) for root in roots]))

    def _check_part(self, part: Any) -> int:
        return base.check_whole(part, "part", 0, self.partitions - 1)

    def _root_of(self, part: int) -> Any:
        return self._keys.buffer(self.name, part)

    def _add(self, part: int, words: list[Arg]) -> None:
        """Send the writes of one part.

        ``words``: now, how many writes may wait, how many marks, then marks and writes.
        """
        words.insert(2, f"{self.name}.{part}")
        reply = self._ask("sb_buffer_add", self._root_of(part).root, *words, also=REFUSALS)
        if reply[0] == OK:
            return
        if reply[0] == Status.CONFLICT:
            raise Changed(f"the mark {reply[1]!r} of {self.name}", expected=None, actual=None)
        if reply[0] == Status.FULL:
            raise Full(
                f"{reply[1]} entries wait in {self.name}, and {self._most} are the most: no flusher writes them out"
            )
        if reply[0] == Status.OVERFLOW:
            raise Overflow(str(reply[1]))
        if reply[0] == Status.FAULT:
            raise EngineFault(str(reply[1]))

    def _end(self, how: str, batch: Batch, now: int | None) -> None:
        if not isinstance(batch, Batch):
            raise BadInput(f"a batch comes from claim(), not {batch!r:.80}", code="SB408")
        root = self._root_of(batch.part).root
        reply = self._ask(
            "sb_buffer_settle", root, how, batch.id, batch.token, base.check_now(now), also=(Status.LOST,)
        )
        if reply[0] == Status.LOST:
            raise Lost(f"batch {batch.id} of {self.name} was claimed by another flusher, or is settled")


def _check_values(values: Any, what: str) -> Iterable[Any]:
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise BadInput(f"{what} are several, not {values!r:.80}", code="SB408")
    return values


def _check_mapping(values: Mapping[str, Any] | None) -> Mapping[str, Any]:
    return {} if values is None else values


def _words(write: Write) -> list[Arg]:
    if not isinstance(write, Write):
        raise BadInput(f"what is added is a Write, not {write!r:.80}", code="SB408")
    for what, given in (("counters", write.counters), ("fields", write.fields)):
        if not isinstance(given, Mapping):
            raise BadInput(f"{what} are given by name, not as {given!r:.80}", code="SB408")
    count = len(write.counters) + len(write.fields)
    if not 1 <= count <= MAX_NAMES:
        raise BadInput(f"a write has 1 to {MAX_NAMES} counters and fields, not {count}", code="SB402")
    words: list[Arg] = [base.check_key(write.entity, "an entity"), len(write.counters), len(write.fields)]
    for name, added in write.counters.items():
        words += [base.check_key(name, "a counter"), base.check_whole(added, name, -MAX_COUNT, MAX_COUNT)]
    for name, value in write.fields.items():
        words += [base.check_key(name, "a field"), base.encode_document(value, name, most=MAX_VALUE)]
    return words


def _marks(marks: Marks) -> list[Arg]:
    if not isinstance(marks, Mapping):
        raise BadInput(f"marks are given by name, not as {marks!r:.80}", code="SB408")
    words: list[Arg] = []
    for name, moved in marks.items():
        if not isinstance(moved, tuple) or len(moved) != 2:
            raise BadInput(f"a mark moves from one text to another, a tuple of two, not {moved!r:.80}", code="SB408")
        seen, new = moved
        base.check_key(new, "a mark's text", most=MAX_MARK)
        if seen is not None and not isinstance(seen, str):
            raise BadInput(f"a mark was seen as a text or None, not {seen!r:.80}", code="SB403")
        if seen == new:
            raise BadInput(f"the mark {name!r:.80} does not move: each call has to move its marks", code="SB403")
        digest = "" if seen is None else hashlib.sha1(seen.encode(), usedforsecurity=False).hexdigest()
        words += [base.check_key(name, "a mark"), digest, new]
    return words


def _entry(text: str) -> Entry:
    id, entity, since, *flat = json.loads(text)
    found = Entry(id, entity, int(since), {}, {}, {})
    for name, value in zip(flat[::2], flat[1::2], strict=True):
        if name[:2] == "c:":
            found.counters[name[2:]] = int(value)
        else:
            written, _, document = value.partition(" ")
            found.fields[name[2:]], found.written[name[2:]] = _value(document), int(written)
    return found


def _value(document: str) -> Any:
    try:
        return json.loads(document)
    except ValueError:  # written by another program: a text
        return document


def _stats(replies: list[list[Any]]) -> Stats:
    lent, first = [], []
    for part, (_, now, _, oldest, _, _, *rows) in enumerate(replies):
        rows = [rows[at : at + 5] for at in range(0, len(rows), 5)]
        lent += [
            LentBatch(id, part, int(n), int(takes), int(since or 0), int(float(again)))
            for id, n, takes, since, again in rows
        ]
        first += [int(now) - int(float(since)) for since in (oldest, *(row[3] for row in rows)) if since]
    pending, held, batches = (sum(int(reply[at]) for reply in replies) for at in (2, 4, 5))
    return Stats(pending, held, batches, max(0, *first, 0) / 1000, lent)
