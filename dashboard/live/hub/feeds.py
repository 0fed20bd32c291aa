"""Feeds: the last value of each watched topic, numbered, and the sockets that watch it.

The feeds of everything watched in this process, and the last value of each. Does no I/O and waits for nothing.
"""

import secrets
from collections import defaultdict
from collections.abc import Iterable, Mapping
from itertools import chain, islice, zip_longest
from typing import Any

from dashboard.live import messages
from dashboard.live.messages import Frame
from dashboard.live.outbox import Outbox
from dashboard.live.topics import Topic
from machines.engine.keys import Keys
from machines.engine.records import Live

from .sources import LOST, Source, Tally, World, find_disclosed_in, sources, value

#: keys that change with every read and are news to nobody by themselves
CLOCKS = frozenset({"now"})


class Feed:
    def __init__(self, topic: Topic, epoch: str) -> None:
        self.topic = topic
        self.epoch = epoch
        self.watchers: set[Outbox] = set()
        self.value: dict[str, Any] | None = None
        self.seq = 0
        self.at = 0
        self.disclosed: frozenset[str] = frozenset()  # sensitive names that its values have shown in clear so far
        self._snapshot: Frame | None = None

    def offer(self, value: dict[str, Any], at: int, disclosed: frozenset[str] = frozenset()) -> None:
        """Take a value read at ``at`` (ms, Redis time), and the sensitive fields that it shows in clear. Send the
        watchers what changed, if anything did."""
        self.disclosed |= disclosed
        old, self.value, self.at, self._snapshot = self.value, value, at, None
        try:
            patch = None if old is None else changes(old, value)
        except Inexpressible:
            patch = None
        if patch is None or patch.keys() - CLOCKS:
            self.seq += 1
            self._send(patch)

    def turn(self, epoch: str) -> None:
        """Begin a new epoch: numbers start again, and the next value goes out as a snapshot."""
        self.epoch, self.seq, self.value, self._snapshot = epoch, 0, None, None

    def snapshot(self) -> Frame | None:
        """Return the current value as a frame, encoded once for all who ask; None before the first read."""
        if self._snapshot is None and self.value is not None:
            self._snapshot = messages.encode(self._make_frame("snapshot", self.value))
        return self._snapshot

    def _send(self, patch: dict[str, Any] | None) -> None:
        """Send the patch; without one the whole value."""
        frame = None if patch is None else messages.encode(self._make_frame("delta", patch))
        for outbox in self.watchers:
            if frame is None:
                outbox.snapshot(self.topic)
            else:
                outbox.delta(self.topic, frame)

    def _make_frame(self, kind: str, data: dict[str, Any]) -> dict[str, Any]:
        return messages.value(kind, self.topic, epoch=self.epoch, seq=self.seq, data=data, at=self.at)


#: how far Redis time may step back before it counts as another server's, ms: clocks are corrected now and then
CLOCK_SLACK = 1000


class Full(Exception):
    """As many topics are watched as may be."""


class Feeds:
    def __init__(self, keys: Keys, *, most: int) -> None:
        self._keys = keys
        self._most = most
        self._feeds: dict[Topic, Feed] = {}
        self._world = World()
        self._needed: dict[Source, set[Topic]] = {}
        self._stale_plan = False
        self.epoch = _make_epoch()

    @property
    def at(self) -> int:
        """Redis time of the last read, ms; 0 before the first."""
        return self._world.at

    # Who watches what

    def join(self, outbox: Outbox, topic: Topic) -> None:
        """Subscribe the socket: it gets the snapshot and then every delta. Raises Full."""
        feed = self._feeds.get(topic)
        if feed is None:
            if len(self._feeds) >= self._most:
                raise Full
            feed = self._feeds[topic] = Feed(topic, self.epoch)
            self._stale_plan = True
        feed.watchers.add(outbox)
        outbox.snapshot(topic)

    def leave(self, outbox: Outbox, topic: Topic) -> None:
        outbox.forget(topic)
        feed = self._feeds.get(topic)
        if feed is None:
            return
        feed.watchers.discard(outbox)
        if not feed.watchers:
            del self._feeds[topic]
            self._stale_plan = True

    def snapshot(self, topic: Topic) -> Frame | None:
        """Return the topic's snapshot as a frame; None while it has not been read."""
        feed = self._feeds.get(topic)
        return None if feed is None else feed.snapshot()

    def has(self, topic: Topic) -> bool:
        feed = self._feeds.get(topic)
        return feed is not None and feed.value is not None

    def find_disclosed(self, topic: Topic) -> tuple[str, frozenset[str]]:
        """Return the instance that a topic is about, and which of its sensitive names the topic has shown in clear."""
        feed = self._feeds.get(topic)
        if feed is None or not feed.disclosed:
            return "", frozenset()
        instance = topic.name if topic.kind == "instance" else (feed.value or {}).get("instance", "")
        return instance, feed.disclosed

    # What has to be read

    def plan(self) -> set[Source]:
        """Return every source that a watched topic needs."""
        if self._stale_plan:
            self._stale_plan = False
            self._needed = defaultdict(set)
            for topic in self._feeds:
                for source in sources(topic, self._world):
                    self._needed[source].add(topic)
            readings = self._world.readings
            self._world.readings = {source: readings[source] for source in self._needed if source in readings}
        return set(self._needed)

    def is_lost(self, source: Source) -> bool:
        """Tell whether the server of a source did not answer when it was read last."""
        return self._world.readings.get(source) is LOST

    def list_unread(self) -> set[Source]:
        return {source for source in self.plan() if source not in self._world.readings}

    def first(self, most: int) -> set[Source]:
        """Return as many of the unread sources as may be read in one go; the people who watch them take turns."""
        unread = self.list_unread()
        if len(unread) <= most:
            return unread
        lines: dict[str, list[Source]] = defaultdict(list)
        for source in unread:
            owners = {outbox.owner for topic in self._needed[source] for outbox in self._feeds[topic].watchers}
            lines[min(owners, default="")].append(source)
        turns = chain.from_iterable(zip_longest(*lines.values()))
        return set(islice((source for source in turns if source is not None), most))

    def is_waiting(self) -> bool:
        """Return whether a socket still waits for a first value."""
        return any(feed.value is None for feed in self._feeds.values())

    def of(self, roots: Iterable[str]) -> set[Source]:
        """Return the sources that may have changed when these partitions rang."""
        rung = set(roots)
        return {source for source in self.plan() if source.root(self._keys) in rung}

    def roots(self) -> set[str]:
        """Return the partitions to listen to."""
        return {root for source in self.plan() if (root := source.root(self._keys)) is not None}

    # What was read

    def take(self, seen: World) -> None:
        """Merge new readings into the old ones, and send the watchers of each topic its new value if that changed."""
        for topic in self.lay(seen):
            self.offer(topic)

    def lay(self, seen: World) -> list[Topic]:
        """Do the first half: merge the readings. Return the topics whose value may have changed, to be offered one by
        one."""
        if self._has_gone_back(seen):
            self.turn()
        old = self._world
        moved = seen.directory != old.directory
        self._stale_plan = self._stale_plan or moved or any(_changes_sources(s, old, seen) for s in seen.readings)
        self._world = World(seen.directory, old.readings | _keep_known(old, seen), seen.at, old.merged)
        self.plan()
        return list(self._feeds if moved else self._find_touched(seen))

    def _find_touched(self, seen: World) -> set[Topic]:
        touched = {topic for source in seen.readings for topic in self._needed.get(source, ())}
        return touched | {topic for topic, feed in self._feeds.items() if feed.value is None}

    def offer(self, topic: Topic) -> None:
        """Do the second half: offer a topic's value. A topic waits while one of its sources is unread; one that nobody
        watches is skipped."""
        if topic in self._feeds and all(source in self._world.readings for source in sources(topic, self._world)):
            found, feed = value(topic, self._world), self._feeds[topic]
            if found.get("unavailable") and feed.value is not None:
                found = feed.value | found  # as it was known last, with the mark
            feed.offer(found, self._world.at, find_disclosed_in(topic, found, self._world))

    def turn(self) -> None:
        """Begin a new epoch: the numbers so far are over, and every watcher gets a snapshot."""
        self.epoch = _make_epoch()
        self._world = World()
        self._stale_plan = True
        for feed in self._feeds.values():
            feed.turn(self.epoch)

    def _has_gone_back(self, seen: World) -> bool:
        """Return whether the server went back in time: emptied, restored, or another one than before."""
        if seen.at < self._world.at - CLOCK_SLACK or self._world.directory.keys() - seen.directory.keys():
            return True
        return any(_has_fallen(self._world.readings.get(source), new) for source, new in seen.readings.items())


def _has_fallen(old: Any, new: Any) -> bool:
    """Return whether a counter fell. Counters of flow, and of what happened on queues, only ever grow."""
    if not isinstance(old, Live | Tally) or new is LOST:
        return False
    return new is None or any(_list_counters(new).get(name, 0) < times for name, times in _list_counters(old).items())


def _list_counters(reading: Live | Tally) -> dict[str, int]:
    if isinstance(reading, Live):
        return reading.flow
    rows = reading.queues.items()
    return {f"{queue} {name}": int(times) for queue, row in rows for name, times in row["counters"].items()}


def _changes_sources(source: Source, old: World, seen: World) -> bool:
    """Return whether the new reading may ask for other sources than the old one did."""
    before, after = old.readings.get(source), seen.readings[source]
    if after is LOST:
        return False
    if source.kind == "instance":
        before = None if before is LOST else before
        return (before or {}).get("_def") != (after or {}).get("_def")
    return source.kind == "workers" and before != after


def _keep_known(old: World, seen: World) -> dict[Source, Any]:
    """Return the new readings. What hardly ever changes stays as it was known while its server does not answer."""
    kept = {source: old.readings[source] for source in seen.readings if source.lasting and source in old.readings}
    return {s: kept.get(s, LOST) if reading is LOST else reading for s, reading in seen.readings.items()}


def _make_epoch() -> str:
    return secrets.token_hex(6)


class Inexpressible(Exception):
    """A null appeared inside the value: a merge patch cannot say that, where null means "remove"."""


def changes(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """Return the patch that turns ``old`` into ``new``; empty when they are the same. Raises Inexpressible."""
    patch: dict[str, Any] = {key: None for key in old if key not in new}
    for key, fresh in new.items():
        if key not in old:
            patch[key] = _check_whole(fresh)
        elif isinstance(fresh, dict) and isinstance(old[key], dict):
            inner = changes(old[key], fresh)
            if inner:
                patch[key] = inner
        elif not same(old[key], fresh):
            patch[key] = _check_whole(fresh)
    return patch


def same(left: Any, right: Any) -> bool:
    """Compare two values as JSON does: true is not 1, at any depth."""
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(same(left[key], right[key]) for key in left)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(same, left, right))
    return isinstance(left, bool) == isinstance(right, bool) and bool(left == right)


def _check_whole(value: Any) -> Any:
    """Return a value that a patch sets. Lists are replaced as they are; objects merge, so nulls in them would be lost.
    Raises Inexpressible."""
    if value is None:
        raise Inexpressible
    if isinstance(value, dict):
        for inner in value.values():
            _check_whole(inner)
    return value
