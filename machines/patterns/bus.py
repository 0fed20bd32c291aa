"""Messages between processes: delivered to current subscribers, or kept until every group of readers is done.

    bus = Bus(engine.client, engine.keys.prefix)
    with bus.subscribe("prices") as prices:         # in one process
        for heard in prices:
            reload() if isinstance(heard, Gap) else use(heard.body)
    bus.publish("prices", {"of": "tea"})            # in another: how many heard it; 0 is no error

    orders = Stream(engine.client, "orders")
    orders.group("billing", start="0")
    orders.append({"order": 7})                     # raises Full rather than drop what a group has not done
    for message in orders.read("billing", "worker-1", block=1.0):
        bill(message.body)
        orders.ack("billing", message.id)

A topic promises nothing: a process that is not subscribed receives nothing, and a subscriber that loses its connection
cannot know what was published meanwhile. It does learn that it may have missed messages: it receives a ``Gap`` once the
subscription is restored. A subscriber that then reads its data again has missed nothing.

A stream delivers each message to one reader of each group at least once: if a reader dies before it acknowledges a
message, another reader gets it after ``idle`` seconds. No message is dropped that a group has not acknowledged. A
stream cannot promise delivery exactly once (the work must be safe to repeat) or an order of work: readers run in
parallel, and messages that are claimed from another reader come late. A message that was delivered more than ``tries``
times becomes dead; the newest 1000 dead messages are kept.
"""

from __future__ import annotations

import json
import random
import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Self

from machines.engine.connection.calls import Arg, translate
from machines.engine.connection.client import FAILURES, Client
from machines.engine.connection.replies import Status, read_pairs
from machines.engine.errors import BadInput
from machines.engine.keys import PREFIX
from machines.engine.pattern_keys import StreamKeys

from . import base
from .base import OK, Full, Gone, Pattern
from .subscriber import Subscriber

MAX_BODY = 65_536  # bytes of a message as JSON
MAX_MOST = 1_000_000  # messages of a stream
MAX_COUNT = 500  # messages or ids of one call
MAX_NAME = 128  # characters of a group's or a reader's name
MAX_TOPICS = 64  # of one subscription
MAX_BLOCK = 3600.0  # seconds
MAX_IDLE = 30 * 86_400.0  # seconds
MAX_PART = 2**64  # each half of an id is below it
FULL, GONE = (Status.FULL,), (Status.GONE,)
ID = re.compile(r"\d{1,20}-\d{1,20}", re.ASCII)
SLICE = 2.0  # seconds that one command waits at most: far less than the timeout of a connection
BACKOFF = 5.0  # seconds between two attempts to subscribe again, at most


@dataclass(frozen=True, slots=True)
class Message:
    """A message. ``body``: any JSON. In a stream, ``id`` is its position and ``deliveries`` how often it was
    delivered, this time included; on a topic they are "" and 0."""

    topic: str
    body: Any
    id: str = ""
    deliveries: int = 0


@dataclass(frozen=True, slots=True)
class Gap:
    """A lost connection that is restored: messages published in these ``seconds`` were not received."""

    topics: tuple[str, ...]
    seconds: float
    why: str


@dataclass(frozen=True, slots=True)
class Lag:
    """The progress of a group. ``unread``: messages never delivered to it, None where the server cannot tell.
    ``pending``: delivered and not acknowledged. ``oldest``: the id of the first message that is not done, "" for
    none. ``last``: the id of the last message delivered. ``lost``: messages trimmed before delivery, which happens
    only to streams of other writers.
    """

    group: str
    unread: int | None
    pending: int
    oldest: str
    readers: int
    last: str
    lost: int


@dataclass(frozen=True, slots=True)
class Dead:
    """A message that was delivered too often, ``deliveries`` times. ``id``: its position among the dead."""

    id: str
    group: str
    message: str
    deliveries: int
    body: Any


class Bus(Pattern):
    """Topics of publish/subscribe: sharded, so that on a cluster a message goes to one server and not to all."""

    def publish(self, topic: str, message: Any) -> int:
        """Publish a message, any JSON of at most 64 KiB; return the number of receivers. Raises BadInput,
        EngineUnavailable."""
        channel = self._keys.topic(base.check_name(topic, "a topic")).channel
        text = base.encode_document(message, "a message", most=MAX_BODY)
        return int(self._caller.raw("SPUBLISH", channel, text))

    def subscribe(self, *topics: str) -> Subscription:
        """Return a subscription, a context manager that subscribes on entering. Entering raises EngineUnavailable."""
        if not 0 < len(topics) <= MAX_TOPICS:
            raise BadInput(f"a subscription has 1 to {MAX_TOPICS} topics, not {len(topics)}", code="SB402")
        channels = {self._keys.topic(base.check_name(topic, "a topic")).channel: topic for topic in topics}
        return Subscription(self._caller.client, channels)


class Subscription:
    """The messages of some topics, on connections of its own. For one thread at a time; it reconnects by itself."""

    def __init__(self, client: Client, channels: dict[str, str]) -> None:
        self._client = client
        self._channels = channels
        self._subscriber: Subscriber | None = None
        self._lost_at, self._why, self._attempt = 0.0, "", 0

    def __enter__(self) -> Self:
        try:
            self._open()
        except FAILURES as error:
            translate(error)
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __iter__(self) -> Iterator[Message | Gap]:
        """Yield messages without end: leave the loop to stop."""
        while True:
            if (heard := self.get(timeout=SLICE)) is not None:
                yield heard

    def get(self, timeout: float = 0.0) -> Message | Gap | None:
        """Return the next message, or None after ``timeout`` seconds. Messages that are not JSON are skipped. A lost
        connection raises nothing: it is restored, and then a Gap is returned."""
        until = time.monotonic() + base.check_number(timeout, "timeout", 0, MAX_BLOCK)
        while True:
            left = max(0.0, until - time.monotonic())
            try:
                if self._subscriber is None:
                    return self._reconnect(left)
                heard = self._subscriber.hear(left)
            except FAILURES as error:
                self._drop_connection(error)
                continue
            if heard is None:
                return None
            if (message := self._message(*heard)) is not None:
                return message

    def close(self) -> None:
        if self._subscriber is not None:
            self._subscriber.close()
            self._subscriber = None

    def _open(self) -> None:
        subscriber = Subscriber(self._client, self._channels)
        try:
            subscriber.open()
        except BaseException:
            subscriber.close()
            raise
        self._subscriber, self._attempt = subscriber, 0

    def _reconnect(self, left: float) -> Gap | None:
        """Try once to reconnect, after a pause; return None when the time ends before that."""
        pause = random.uniform(0, min(BACKOFF, 0.05 * 2**self._attempt))  # noqa: S311  spreading load, not a secret
        time.sleep(min(pause, left))
        if pause > left:
            return None
        self._attempt = min(self._attempt + 1, 16)
        self._open()
        return Gap(tuple(self._channels.values()), time.monotonic() - self._lost_at, self._why)

    def _drop_connection(self, error: Exception) -> None:
        if self._subscriber is not None:
            self.close()
            self._lost_at, self._why = time.monotonic(), str(error) or type(error).__name__

    def _message(self, channel: str, text: bytes) -> Message | None:
        try:
            return Message(self._channels[channel], json.loads(text))
        except (ValueError, RecursionError):
            return None


class Stream(Pattern):
    """Messages that are kept until all groups are done with them, at most ``most`` of them.

    ``tries``: how often a message is delivered before it becomes dead; 0: without end.
    """

    _FOREIGN: tuple[str, ...] = ()

    def __init__(
        self, redis: Client, topic: str, *, prefix: str = PREFIX, most: int = 100_000, tries: int = 16
    ) -> None:
        super().__init__(redis, prefix)
        self.topic = base.check_name(topic, "a topic")
        self.keys = self._keys.stream(topic)
        self._most = base.check_whole(most, "most", 1, MAX_MOST)
        self._tries = base.check_whole(tries, "tries", 0, MAX_MOST)
        self._cursors: dict[str, str] = {}  # group -> where idle messages are looked for next

    def append(self, message: Any) -> str:
        """Append a message and return its id. In a full stream the oldest message that every group is done with is
        removed.

        Raises Full, and removes nothing, when a group still needs the oldest; BadInput, EngineUnavailable.
        """
        text = base.encode_document(message, "a message", most=MAX_BODY)
        reply = self._ask("sb_bus_append", self.keys.root, self._most, text, also=FULL)
        if reply[0] != OK:
            why = f"group {reply[2]!r} is not done with the oldest" if reply[2] else "nothing can be dropped"
            raise Full(f"stream {self.topic!r} holds {reply[1]} messages of {self._most}: {why}")
        return str(reply[1])

    def group(self, name: str, *, start: str = "0") -> bool:
        """Create a group of readers that begins with the oldest message, or after the newest (``"$"``).

        Returns False, and changes nothing, when the group exists. Raises Full beyond 64 groups.
        """
        if start not in ("0", "$"):
            raise BadInput(
                f"a group starts at '0', the oldest message, or '$', the next one: not {start!r:.80}", code="SB402"
            )
        return self._group("make", name, start)

    def forget_group(self, name: str) -> bool:
        """Delete a group with its state; messages that only it had not done may be removed from now on."""
        self._cursors.pop(name, None)
        return self._group("forget", name)

    def read(
        self, group: str, reader: str, *, count: int = 100, block: float = 0.0, idle: float = 60.0
    ) -> list[Message]:
        """Read up to ``count`` messages for one reader of a group: first those delivered ``idle`` seconds ago and not
        acknowledged, then new ones. ``idle`` must be longer than the work on a batch takes.

        Waits up to ``block`` seconds for a message. Raises Gone when there is no such group.
        """
        until = time.monotonic() + base.check_number(block, "block", 0, MAX_BLOCK)
        while True:
            _, _, _, last, found, *_ = self._read(group, reader, count, idle)
            left = until - time.monotonic()
            if found or left <= 0:
                return [Message(self.topic, _body(fields), id, times) for id, times, fields in found]
            self._wait(last, left)

    def ack(self, group: str, *ids: str) -> int:
        """Acknowledge messages for the group, whichever reader has them; return how many were still pending."""
        return self._settle("ack", group, "", ids)

    def give_back(self, group: str, reader: str, *ids: str) -> int:
        """Return messages unread: the next reader gets them. Returns how many this reader still had."""
        return self._settle("back", group, _name(reader, "a reader"), ids)

    def lag(self) -> list[Lag]:
        """Read the progress of every group."""
        rows = self._ask("sb_bus_look", self.keys.root, "lag")[4]
        return [
            Lag(str(name), None if unread == "" else int(unread), int(pending), oldest, int(readers), last, int(lost))
            for name, unread, pending, oldest, readers, last, lost in rows
        ]

    def dead(self, count: int = 100) -> list[Dead]:
        """Read the dead messages, newest first."""
        asked = base.check_whole(count, "count", 1, 1000)
        rows = [(id, read_pairs(fields)) for id, fields in self._ask("sb_bus_look", self.keys.root, "dead", asked)[1]]
        return [
            Dead(id, found["group"], found["id"], int(found["deliveries"]), _json(found.get("body")))
            for id, found in rows
        ]

    def __len__(self) -> int:
        """Count its messages, acknowledged or not. One round trip."""
        return int(self._ask("sb_bus_look", self.keys.root, "lag")[1])

    def _group(self, kind: str, name: str, *where: str | int) -> bool:
        reply = self._ask("sb_bus_group", self.keys.root, kind, _name(name), *where, also=FULL)
        if reply[0] != OK:
            raise Full(f"stream {self.topic!r} has {reply[1]} groups, which is the most")
        return bool(reply[1])

    def _read(self, group: str, reader: str, count: int, idle: float) -> list[Any]:
        words: list[Arg] = [_name(group), _name(reader, "a reader"), base.check_whole(count, "count", 1, MAX_COUNT)]
        words += [
            base.check_seconds(idle, "idle", most=MAX_IDLE),
            self._cursors.get(group, ""),
            self._tries,
            *self._FOREIGN,
        ]
        reply = self._ask_group("sb_bus_read", group, words)
        self._cursors[group] = str(reply[1])
        return reply

    def _wait(self, last: str, left: float) -> None:
        """Wait until there is a message after ``last``, or the time is over."""
        block = max(1, round(min(left, SLICE) * 1000))
        self._caller.command("XREAD", "COUNT", 1, "BLOCK", block, "STREAMS", self.keys.log, last)

    def _settle(self, kind: str, group: str, reader: str, ids: Sequence[str]) -> int:
        if not 0 < len(ids) <= MAX_COUNT:
            raise BadInput(f"1 to {MAX_COUNT} ids, not {len(ids)}", code="SB402")
        words: list[Arg] = [kind, _name(group), reader, self._most, *map(_id, ids)]
        return int(self._ask_group("sb_bus_ack", group, words)[1])

    def _ask_group(self, function: str, group: str, words: list[Arg]) -> list[Any]:
        reply = self._ask(function, self.keys.root, *words, also=GONE)
        if reply[0] != OK:
            raise Gone(f"stream {self.topic!r} has no group {group!r}")
        return reply


class AttachedStream(Stream):
    """Groups on a stream of another writer, below ``root``: its messages have any fields, and are delivered without
    end. The writer decides how long messages are kept: ``lost`` counts those trimmed before delivery."""

    _FOREIGN = ("1",)

    def __init__(self, redis: Client, root: str, *, prefix: str = PREFIX, most: int) -> None:
        super().__init__(redis, "attached", prefix=prefix, most=most, tries=0)
        self.topic = base.check_key(root, "a stream's root")
        self.keys = StreamKeys(root)

    def append(self, message: Any) -> str:
        raise BadInput(f"{self.topic} is written by its owner alone", code="SB408")

    def begin(self, name: str, start: str, position: int | None = None, *, anew: bool = False) -> bool:
        """Create a group that starts at ``"0"``, ``"$"`` or after an id, up to which the stream ever got
        ``position`` messages. ``anew``: also in place of an existing group."""
        base.check_flag(anew, "anew")
        known = "" if position is None else base.check_whole(position, "position", 0, base.MAX_EXACT)
        self._cursors.pop(name, None)
        return self._group("anew" if anew else "make", name, start if start in ("0", "$") else _id(start), known)

    def stands(self, group: str) -> tuple[str, int] | None:
        """Return the id up to which a group is done, and how many messages the stream ever got up to there; None
        while a message is pending, and where the server cannot tell."""
        wanted = _name(group)
        _, _, added, _, rows = self._ask("sb_bus_look", self.keys.root, "lag")
        for name, unread, pending, _, _, last, lost in rows:
            if name == wanted and not pending and unread != "":
                return str(last), int(added) - int(unread) - int(lost)
        return None

    def take(self, group: str, reader: str, *, count: int, idle: float) -> StreamPage:
        """Read messages like ``read``, without waiting. Raises Gone."""
        _, _, lost, last, found, before = self._read(group, reader, count, idle)
        return StreamPage([(id, read_pairs(fields)) for id, _, fields in found], str(last), int(lost), str(before))


@dataclass(frozen=True, slots=True)
class StreamPage:
    """One page of a stream. ``entries``: id and fields of each. ``last``: the id of the last entry delivered to the
    group. ``lost``: entries trimmed before delivery, after the one called ``before`` or while a reader had them;
    each is counted once."""

    entries: list[tuple[str, dict[str, str]]]
    last: str
    lost: int
    before: str = ""


def _name(value: Any, what: str = "a group") -> str:
    return base.check_key(value, f"{what}'s name", most=MAX_NAME)


def _id(value: Any) -> str:
    fits = isinstance(value, str) and ID.fullmatch(value)
    if not fits or (len(value) >= 20 and any(int(half) >= MAX_PART for half in value.split("-"))):
        raise BadInput(f"an id is two whole numbers below 2^64 with '-' between, not {value!r:.80}", code="SB401")
    return str(value)


def _body(fields: Sequence[str]) -> Any:
    ours = len(fields) == 2 and fields[0] == "body"
    return _json(fields[1] if ours else read_pairs(fields).get("body"))


def _json(text: Any) -> Any:
    """Decode JSON; None for what another program wrote and is not JSON."""
    try:
        return json.loads(text or "null")
    except (ValueError, RecursionError):
        return None
