"""The sections of the Patterns page: what each pattern holds now, and one small thing that is done with it.

The traffic of the demo does that thing all the time, and the button of a section once.
"""

import inspect
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import import_module
from random import Random
from typing import Any, NamedTuple

from django.core.cache import cache

from dashboard.shared.times import format_until
from machines.connections import get_pattern, get_prefix, get_raw_client
from machines.engine.connection.client import Client
from machines.engine.keys import choose_partition
from machines.engine.pattern_keys import PatternKeys
from machines.insight.statistics.ages import format_age
from machines.patterns import (
    Batch,
    Bus,
    Cardinality,
    Full,
    Gone,
    Locks,
    Records,
    Scoreboard,
    Sessions,
    Snowflakes,
    Stream,
    Taken,
    Throttle,
    WriteBuffer,
)

WHO = "traffic"


class Table(NamedTuple):
    caption: str
    heads: Sequence[str]
    rows: Sequence[Sequence[Any]]

    @property
    def columns(self) -> list[tuple[str, bool]]:
        return self._mark(self.heads)

    @property
    def cells(self) -> list[list[tuple[Any, bool]]]:
        return [self._mark(row) for row in self.rows]

    def _mark(self, row: Sequence[Any]) -> list[tuple[Any, bool]]:
        """Pair each cell with whether its column has numbers, which the first row tells."""
        return [(cell, isinstance(first, int | float)) for cell, first in zip(row, self.rows[0], strict=True)]


@dataclass(frozen=True, slots=True)
class View:
    """What a section shows now. ``keys``: names of keys that may be in Redis."""

    facts: Mapping[str, Any]
    keys: Sequence[str]
    tables: Sequence[Table] = ()


class Section:
    """A pattern on the page."""

    name: str
    title: str
    summary: str

    def show(self) -> View:
        raise NotImplementedError

    def move(self, random: Random) -> None:
        """Do one small thing in bounded space."""
        raise NotImplementedError

    @property
    def guarantees(self) -> str:
        """Return what the module of the pattern says of itself."""
        return inspect.getdoc(import_module(f"machines.patterns.{self.name}")) or ""


def connect() -> tuple[Client, PatternKeys]:
    return get_raw_client(), PatternKeys(get_prefix())


class SessionsSection(Section):
    name, title = "sessions", "Sessions"
    summary = "Sessions under a token: sliding expiry, rotation and revocation; Redis stores only a hash of the token."
    NAME, MOST, PARTITIONS = "demo.baskets", 4, 2
    MOST_TEA = 99
    SELDOM = 0.15  # of the turns
    _token = ""

    def _open(self) -> Sessions:
        return get_pattern(
            Sessions, self.NAME, ttl=120, lifetime=600, most=self.MOST, drop=True, partitions=self.PARTITIONS
        )

    def show(self) -> View:
        found, now = self._open().of_each([WHO])[WHO], time.time() * 1000
        rows = [(row.handle, row.state["tea"], row.revision, format_until((now - row.expires) / 1000)) for row in found]
        keys = connect()[1].session(self.NAME, choose_partition(WHO, self.PARTITIONS))
        return View(
            {"sessions": len(found), "max": self.MOST},
            [keys.of(WHO), *(keys.one(row.handle) for row in found)],
            [Table("Sessions", ("Session", "Tea", "Revision", "Expires"), rows)],
        )

    def move(self, random: Random) -> None:
        """Fill a basket, which goes on under another token now and then."""
        sessions = self._open()
        try:
            found = sessions.rotate(self._token) if random.random() < self.SELDOM else sessions.get(self._token)
        except Gone:
            found = sessions.create(WHO, {"tea": 0})
        self._token = found.token
        sessions.put(self._token, {"tea": (found.state["tea"] + 1) % self.MOST_TEA})


class WriteBufferSection(Section):
    name, title = "write_buffer", "Write buffer"
    summary = "Combines many small writes into few large ones; a batch of a crashed flusher is retried."
    NAME, MOST = "demo.clicks", 50
    DOORS = ("front door", "back door", "gate")
    LEASE, LIMIT = 10.0, 2  # seconds, entries of a batch
    GATHER = 20.0  # seconds that clicks wait before they are written out
    WRITTEN, KEPT = "patterns.write_buffer.written", 600  # seconds

    def _open(self) -> WriteBuffer:
        return get_pattern(WriteBuffer, self.NAME, most=self.MOST)

    def show(self) -> View:
        stats, keys = self._open().stats(), connect()[1].buffer(self.NAME, 0)
        written = cache.get(self.WRITTEN, {})
        return View(
            {"pending": stats.pending, "in progress": stats.held, "oldest": f"{stats.oldest:.0f} s", "max": self.MOST},
            [keys.pending, *map(keys.open, self.DOORS), keys.claims],
            [Table("Written", ("Door", "Writes", "Clicks"), [(on, *written.get(on, (0, 0))) for on in self.DOORS])],
        )

    def _write(self, batch: Batch) -> None:
        rows = cache.get(self.WRITTEN, {})
        for entry in batch.entries:
            writes, clicks = rows.get(entry.entity, (0, 0))
            rows[entry.entity] = (writes + 1, clicks + entry.counters["clicks"])
        cache.set(self.WRITTEN, rows, self.KEPT)

    def move(self, random: Random) -> None:
        """Click at a door, and write out what has waited for long."""
        buffer = self._open()
        buffer.flush(self._write, limit=self.LIMIT, lease=self.LEASE, gather=self.GATHER)
        buffer.add(random.choice(self.DOORS), counters={"clicks": 1}, fields={"by": WHO})


class ThrottleSection(Section):
    name, title = "throttle", "Throttle"
    summary = "Rate limits shared by all processes, checked in one call."
    BUCKET, KEY, LIMIT, PER = "demo.hits", "everybody", 5, 20  # seconds

    def show(self) -> View:
        (_, keys), rows = connect(), []
        for title, window in (("Steady rate", False), ("Fixed window", True)):
            now = get_pattern(Throttle).look(self.BUCKET, self.KEY, limit=self.LIMIT, per=self.PER, window=window)
            again = f"in {now.retry_after:.1f} s" if now.retry_after else "now"
            rows.append((title, now.remaining, f"{now.reset_after:.1f} s", again))
        return View(
            {"limit": self.LIMIT, "in": f"{self.PER} s"},
            [keys.pace(self.BUCKET, self.KEY).run, keys.window(self.BUCKET, self.KEY).count],
            [Table("Limits", ("Limit", "Remaining", "Resets in", "Next allowed"), rows)],
        )

    def move(self, random: Random) -> None:
        throttle = get_pattern(Throttle)
        for take in (throttle.take, throttle.count):
            take(self.BUCKET, self.KEY, limit=self.LIMIT, per=self.PER)


class IdsSection(Section):
    name, title = "ids", "Ids"
    summary = "Unique ids that sort by time, generated locally from time ranges leased in Redis; and numbers in blocks."
    NAME, LEASE, SHOWN = "demo.ids", 5.0, 6  # seconds, nodes

    def show(self) -> View:
        (redis, keys), now = connect(), time.time() * 1000
        ids = keys.ids(self.NAME)
        last = redis.zrevrange(ids.nodes, 0, self.SHOWN - 1, withscores=True)
        nodes = [(int(node), _say_moment(int(until), now)) for node, until in last]
        return View(
            {"lease": f"{self.LEASE:g} s", "nodes": 1024},
            [ids.nodes, ids.holders, ids.guard],
            [Table("Nodes in Redis", ("Node", "Range ends"), nodes)],
        )

    def move(self, random: Random) -> None:
        get_pattern(Snowflakes, self.NAME, lease=self.LEASE).next()


class LocksSection(Section):
    name, title = "locks", "Locks"
    summary = "Locks with an expiry and a fencing token that detects late owners."
    LOCK, TTL = "demo.lever", 2.0  # seconds

    def show(self) -> View:
        keys, holder = connect()[1].lock(self.LOCK), get_pattern(Locks).peek(self.LOCK)
        facts: dict[str, Any] = {"owner": holder.owner if holder else "none"}
        if holder:
            facts |= {"fencing token": holder.fence, "for": format_age(time.time() - holder.since / 1000)}
        if holder and holder.left is not None:
            facts["ends in"] = f"{holder.left:.1f} s"
        return View(facts, [keys.holder, keys.last])

    def move(self, random: Random) -> None:
        with suppress(Taken):
            get_pattern(Locks).lock(self.LOCK, ttl=self.TTL, owner=WHO).acquire()


class BusSection(Section):
    name, title = "bus", "Bus"
    summary = "Publish and subscribe, and streams with consumer groups."
    GROUP, TOPIC, MOST = "billing", "demo.news", 8  # messages

    def _open(self) -> Stream:
        return get_pattern(Stream, "demo.orders", most=self.MOST)

    def show(self) -> View:
        stream = self._open()
        messages = connect()[0].xrange(stream.keys.log, count=self.MOST)
        lag = next((lag for lag in stream.lag() if lag.group == self.GROUP), None)
        facts: dict[str, Any] = {"messages": f"{len(messages)} of {self.MOST}"}
        if lag:
            facts |= {"unread": "?" if lag.unread is None else lag.unread, "pending": lag.pending}
        rows = [(id, f"{format_age(time.time() - int(id.partition('-')[0]) / 1000)} ago") for id, _ in messages]
        return View(facts, [stream.keys.log, stream.keys.dead], [Table("Messages", ("Message", "Appended"), rows)])

    def move(self, random: Random) -> None:
        """Append an order, bill the oldest, and publish to the listeners."""
        orders = self._open()
        orders.group(self.GROUP)
        for message in orders.read(self.GROUP, WHO, count=1):
            orders.ack(self.GROUP, message.id)
        with suppress(Full):
            orders.append({"order": random.randrange(100_000)})
        get_pattern(Bus).publish(self.TOPIC, {"text": "the traffic was here"})


class CardinalitySection(Section):
    name, title = "cardinality", "Cardinality"
    summary = "Unique counts per day, week and month: an exact set while small, a 12 KB sketch after."
    NAME, EXACT, CROWD = "demo.visitors", 200, 5_000  # members up to which a day is exact; people there are
    DAY = 86_400_000  # ms

    def _open(self) -> Cardinality:
        return get_pattern(Cardinality, self.NAME, exact=self.EXACT, keep=31)

    def show(self) -> View:
        visitors, keys = self._open(), connect()[1].distinct(self.NAME)
        today, rows, facts = int(time.time() * 1000) // self.DAY, [], {}
        for period, label in (("day", "today"), ("week", "this week"), ("month", "this month")):
            count = visitors.count(period)
            facts[label] = f"{'' if count.exact else '≈ '}{count.number:,}"
        for count in visitors.series("day", 5):
            kind = "sketch" if not count.exact else "set" if count.number else "–"
            rows.append((f"{datetime.fromtimestamp(count.begin / 1000, UTC):%d %b %Y}", count.number, kind))
        return View(
            facts,
            [keys.set(today, ""), keys.sketch(today, ""), keys.sketch(today - 1, "")],
            [Table("The last five days", ("Day (UTC)", "Visitors", "Structure"), rows)],
        )

    def move(self, random: Random) -> None:
        self._open().add(*(f"person-{random.randrange(self.CROWD)}" for _ in range(3)))


class ScoreboardSection(Section):
    name, title = "scoreboard", "Scoreboard"
    summary = "Rankings with ties, daily boards and decaying scores, in bounded space."
    PLAYERS, MOST, HALF_LIFE, FADING = ("ann", "bob", "cid", "dan", "eve", "fay"), 8, 60, "demo.fading"  # seconds

    def _open(self) -> dict[str, Scoreboard]:
        return {
            "Today": get_pattern(Scoreboard, "demo.today", most=self.MOST, period="day", keep=1),
            "Fading": get_pattern(Scoreboard, self.FADING, most=self.MOST, half_life=self.HALF_LIFE),
        }

    def show(self) -> View:
        keys, tables = connect()[1].board(self.FADING), []
        for title, board in self._open().items():
            rows = [
                (f"{at.rank}{' =' if at.tied else ''}", at.member, round(at.score, 2)) for at in board.top(self.MOST)
            ]
            tables.append(Table(title, ("Rank", "Player", "Points"), rows))
        facts = {"capacity": self.MOST, "half-life of the fading board": f"{self.HALF_LIFE} s"}
        return View(facts, [keys.scores("all"), keys.epoch], tables)

    def move(self, random: Random) -> None:
        player = random.choice(self.PLAYERS)
        for board in self._open().values():
            board.add(player, 1)


class CasSection(Section):
    name, title = "cas", "Compare and set"
    summary = "Write only over the value that was read; on a conflict, retry with the current value."
    NAME, KEY, TTL = "demo.cas", "note", 3600.0  # seconds

    def _open(self) -> Records:
        return get_pattern(Records, self.NAME, ttl=self.TTL)

    def show(self) -> View:
        keys, record = connect()[1].record(self.NAME), self._open().get(self.KEY)
        return View({"text": record.value or "none", "generation": record.generation}, [keys.one(self.KEY), keys.last])

    def move(self, random: Random) -> None:
        self._open().update(self.KEY, lambda _: f"written by the traffic, {random.randrange(100)}")


def _say_moment(ms: float, now: float) -> str:
    return f"in {format_age((ms - now) / 1000)}" if ms > now else f"ended {format_age((now - ms) / 1000)} ago"


SECTIONS: dict[str, Section] = {
    section.name: section
    for section in (
        SessionsSection(), WriteBufferSection(), ThrottleSection(), IdsSection(), LocksSection(), BusSection(),
        CardinalitySection(), ScoreboardSection(), CasSection(),
    )
}  # fmt: skip
