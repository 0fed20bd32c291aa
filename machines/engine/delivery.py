"""Due timers, and messages from instance to instance: what moves machines while nobody calls.

A step puts its messages into the outbox of its own partition, in the same atomic call. From there any live process
carries them to the partitions they are for: delivered at least once, applied once, because each partition remembers
which messages of which outbox it has applied (ids below the outbox's oldest message need not be remembered).
Messages between two instances arrive in the order they were sent.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass

from .calls import Caller
from .catalog import Catalog
from .errors import EngineFault, EngineUnavailable, SignalboxError
from .keys import Partition
from .replies import Status

log = logging.getLogger(__name__)

BATCH = 200  # timers or messages one call handles: keeps the call in the low milliseconds
ROUNDS = 50  # of messages that cause messages, in one go; the next tick carries on


@dataclass(frozen=True, slots=True)
class Ticked:
    """``due``: ms at which the partition's next timer is due, None without any; ``mail``: messages that wait."""

    fired: int
    postponed: int
    due: int | None
    mail: int


@dataclass(frozen=True, slots=True)
class _Message:
    id: str
    kind: str
    machine: str
    instance: str
    body: str


class Delivery:
    def __init__(self, caller: Caller, catalog: Catalog) -> None:
        self._caller = caller
        self._catalog = catalog

    def fire_due(self, root: str, now: str) -> Ticked:
        """Fire one batch of a partition's due timers."""
        reply = self._caller.call("sb_tick", root, now, BATCH)
        if reply[0] != Status.OK:
            raise EngineFault(f"the timers of {root}: {reply[1]}")
        due = int(float(reply[3])) if reply[3] != "" else None
        return Ticked(int(reply[1]), int(reply[2]), due, int(reply[4]))

    def deliver(self, root: str, now: str = "") -> int:
        """Empty an outbox, and those its messages fill, as far as they can be delivered; how many arrived."""
        moved, waiting = 0, {root: None}
        for _ in range(ROUNDS):
            if not waiting:
                break
            following: dict[str, None] = {}
            for outbox in waiting:
                count, touched = self._empty(outbox, now)
                moved += count
                following |= dict.fromkeys(touched)
            waiting = following
        return moved

    def _empty(self, source: str, now: str) -> tuple[int, set[str]]:
        """One batch of an outbox: how many messages it was rid of, and the partitions whose outboxes may hold more."""
        floor, messages = self._read(source)
        settled: list[str] = []
        stuck: set[str] = set()  # partitions that could not take a message: what follows has to wait for it
        touched: set[str] = set()
        for message in messages:
            root = self._root(message)
            if root in stuck:
                continue
            verdict, why = self._hand_over(source, floor, message, root, now)
            if verdict == "":
                stuck.add(root or "")
                continue
            settled += [message.id, verdict, why]
            touched.add(root or source)
        if not settled:
            return 0, set()
        reply = self._caller.call("sb_settle", source, now, *settled)
        if reply[0] != Status.OK:
            raise EngineFault(f"the outbox of {source}: {reply[1]}")
        if "failed" in settled or (len(messages) == BATCH and not stuck):
            touched.add(source)
        return len(settled) // 3, touched

    def _read(self, source: str) -> tuple[str, list[_Message]]:
        reply = self._caller.call("sb_outbox", source, BATCH, "")
        if reply[0] != Status.OK:
            raise EngineFault(f"the outbox of {source}: {reply[1]}")
        words = [str(word) for word in reply[2:]]
        return str(reply[1]), [_Message(*words[i : i + 5]) for i in range(0, len(words), 5)]

    def _root(self, message: _Message) -> str | None:
        """The partition a message is for; None where there is no such machine."""
        try:
            return self._catalog.partition(message.machine, message.instance).root
        except EngineUnavailable:
            raise
        except SignalboxError:
            return None

    def _hand_over(self, source: str, floor: str, message: _Message, root: str | None, now: str) -> tuple[str, str]:
        """("done" or "failed", why); nothing at all when it has to be tried again."""
        if root is None:
            return "failed", f"no machine {message.machine!r} is published"
        args = (source, message.id, floor, message.kind, message.instance, message.body, now)
        reply = self._caller.call("sb_deliver", root, *args)
        if reply[0] == Status.OK:
            return "done", ""
        if reply[0] == Status.FAILED:
            return "failed", str(reply[1])
        log.warning("message %s of %s could not be delivered: %s", message.id, source, reply[1:])
        return "", ""

    def tick(self, partitions: Iterable[Partition], now: str) -> tuple[int, int | None]:
        """Fire what is due and deliver what waits; how much moved, and ms of the next deadline."""
        moved, deadlines = 0, []
        for partition in partitions:
            ticked = self.fire_due(partition.root, now)
            moved += ticked.fired
            while ticked.fired == BATCH:
                ticked = self.fire_due(partition.root, now)
                moved += ticked.fired
            if ticked.mail:
                moved += self.deliver(partition.root, now)
            if ticked.due is not None:
                deadlines.append(ticked.due)
        return moved, min(deadlines, default=None)
