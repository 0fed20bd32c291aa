"""Due timers, and messages from instance to instance: what moves machines while nobody calls.

A step puts its messages into the outbox of its own partition, in the same atomic call. From there any live process
carries them to the partitions they are for, in three round trips however many there are: read, deliver, settle.

Delivery rule: a message is delivered at least once and applied once, in the order its sender sent it to that receiver.
The receiving partition remembers what it applied, and what it refused for good, as long as a message may come again.
One that cannot be delivered keeps only those waiting that are for the same instance, and not for ever: after ten
minutes it has failed (a day where its partition cannot be reached at all), and the sender is told, as of any failure.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from redis.exceptions import NoPermissionError

from machines.engine.connection.calls import Caller, translate
from machines.engine.connection.replies import Status
from machines.engine.errors import EngineFault, EngineUnavailable, SignalboxError
from machines.engine.keys import Partition
from machines.engine.publishing.catalog import Catalog

from .outbox import FAULT_PATIENCE, Backlog, Message, OutboxPage

log = logging.getLogger(__name__)

TIMERS = 200  # one call fires at most in a partition; as many jobs of a queue
TOGETHER = 100  # partitions one call ticks
WORDS = 5  # of a message in the answer of sb_outbox

Calls = list[tuple[str, str | tuple[str, ...], Sequence[Any]]]


@dataclass(frozen=True, slots=True)
class DeliveryLimits:
    """``rounds`` of timers that arm timers, and of messages that cause messages, in one go: the next one carries on.
    ``messages``: how many one look reads; ``lag``: seconds to leave what could not be delivered to others."""

    rounds: int
    messages: int
    lag: float


STEADY = DeliveryLimits(10, 200, 0.0)  # of those who come again at once while there is something to do
THOROUGH = DeliveryLimits(50, 200, 0.0)
EAGER = DeliveryLimits(
    8, 50, 60.0
)  # of whoever fired, and has other things to do than to wait for a partition that is away


@dataclass(frozen=True, slots=True)
class DeliveryReport:
    """``moved``: timers fired, jobs taken back or woken, messages that went; ``wait``: ms until the next of these is
    due, None where nothing waits; ``due``: when the next timer is, None without any, or where nobody looked;
    ``faults``: what went wrong, partition by partition, while the others went on."""

    moved: int
    due: int | None
    wait: int | None
    faults: tuple[SignalboxError, ...]


@dataclass(slots=True)
class _Progress:
    moved: int = 0
    due: int | None = None
    wait: int | None = None
    mail: dict[str, None] = field(default_factory=dict)  # partitions whose outbox is not empty
    faults: list[SignalboxError] = field(default_factory=list)

    def ticked(self, root: str, now: int, told: Sequence[Any]) -> bool:
        """Notes what ``sb_tick`` answered of a partition; says whether there is more to do right now."""
        fired, _, jobs, timer, due, mail, *why = told
        self.moved += int(fired) + int(jobs)
        self.faults += [EngineFault(f"sb_tick of {root}: {each}") for each in why]
        if int(mail):
            self.mail[root] = None
        if timer != "" and int(timer) > now:
            self.due = int(timer) if self.due is None else min(self.due, int(timer))
        if due == "":
            return False
        wait = max(0, int(due) - now)
        if wait:
            self.wait = wait if self.wait is None else min(self.wait, wait)
        return wait == 0


class Delivery:
    def __init__(self, caller: Caller, catalog: Catalog, clock: Callable[[], float] = time.monotonic) -> None:
        self._caller = caller
        self._catalog = catalog
        self._clock = clock
        self._backlogs: dict[str, Backlog] = {}
        self._apart = False

    def drive(
        self, partitions: Iterable[Partition], now: str = "", *, retry: bool = False, look: bool = True
    ) -> DeliveryReport:
        """Do what is due and deliver what waits. ``retry``: also what could not be delivered lately. Without ``look``
        the server's memory is trusted where it says that nothing is due."""
        tally, effort = _Progress(), THOROUGH if retry else STEADY
        self._tick([partition.root for partition in partitions], (now, TIMERS, "look" if look else ""), tally, effort)
        if retry:
            self._backlogs.clear()
        self._carry(tally.mail, now, tally, effort)
        return DeliveryReport(tally.moved, tally.due, tally.wait, tuple(tally.faults))

    def deliver(self, root: str, now: str = "") -> int:
        """Carry a step's messages on at once, as far as that is quick; how many went."""
        tally = _Progress()
        self._carry([root], now, tally, EAGER)
        for fault in tally.faults:
            log.info("messages of %s are left for a worker: %s", root, fault)
        return tally.moved

    def _tick(self, roots: Sequence[str], words: Sequence[Any], tally: _Progress, effort: DeliveryLimits) -> None:
        """One call for many partitions, where they all live on one server.

        ``words``: now, limit, and "look" or "".
        """
        waiting, together = list(roots), 1 if self._caller.spread or self._apart else TOGETHER
        for _ in range(effort.rounds):
            if not waiting:
                return
            groups = [tuple(waiting[i : i + together]) for i in range(0, len(waiting), together)]
            waiting = []
            for group, reply in zip(groups, self._ask([("sb_tick", g, words) for g in groups], tally), strict=True):
                if reply:
                    told = zip(group, reply[2:], strict=True)
                    waiting += [root for root, each in told if tally.ticked(root, int(reply[1]), each)]
                elif together > 1 and isinstance(tally.faults[-1].__cause__, NoPermissionError):
                    self._apart = True  # this account may not use all of them: each on its own from now on
                    self._tick(roots, words, tally, effort)
                    return
        if waiting:
            tally.wait = 0

    def _carry(self, roots: Iterable[str], now: str, tally: _Progress, effort: DeliveryLimits) -> None:
        """Empty these outboxes, and those their messages fill."""
        waiting = dict.fromkeys(roots)
        for _ in range(effort.rounds):
            if not waiting:
                break
            looks, server_now, more = self._read(waiting, tally, effort)
            following = dict.fromkeys(more)
            for root in self._hand_over(looks, now, server_now, tally):
                following[root] = None
            self._settle(looks, now, tally, following)
            waiting = following

    def _read(
        self, roots: Iterable[str], tally: _Progress, effort: DeliveryLimits
    ) -> tuple[list[OutboxPage], int, list[str]]:
        """The next page of each outbox, ms of the server's clock, and the outboxes that hold more."""
        begun = self._clock() - effort.lag
        looks = [OutboxPage(root, self._backlogs.get(root, Backlog()).begun(begun)) for root in roots]
        found, more, server_now = [], [], 0
        replies = self._ask([("sb_outbox", look.source, (effort.messages, look.after)) for look in looks], tally)
        for look, reply in zip(looks, replies, strict=True):
            if not reply:
                continue
            words = [str(word) for word in reply[3:]]
            look.sort([Message(*words[i : i + WORDS]) for i in range(0, len(words), WORDS)], self._root)
            server_now = int(reply[1])
            if words:
                found.append(look)
            if reply[2] == "1":
                more.append(look.source)
        return found, server_now, more

    def _hand_over(self, looks: Sequence[OutboxPage], now: str, server_now: int, tally: _Progress) -> list[str]:
        """Deliver what each look found; the partitions whose own outboxes hold something afterwards."""
        pairs = [(look, root) for look in looks for root in look.batches]
        at = int(now) if now else server_now
        calls: Calls = []
        for look, root in pairs:
            words = [w for m in look.batches[root] for w in (m.id, m.kind, m.instance, m.body)]
            head = (look.source, look.floor(root), now, max(0, at - FAULT_PATIENCE))
            calls.append(("sb_deliver", root, (*head, *words)))
        touched = []
        for (look, root), reply in zip(pairs, self._caller.many(calls), strict=True):
            if isinstance(reply, Exception):
                tally.faults.append(_error(reply))
                look.unreachable(root, at)
            elif reply[0] == Status.NO_MACHINE:
                self._gone(look, root)
            elif reply[0] != Status.OK:
                tally.faults.append(EngineFault(f"messages for {root}: {reply[1]}"))
                look.unreachable(root, at)
            else:
                for message, why in look.judge(root, [str(word) for word in reply[2:]]):
                    log.warning("message %s of %s for %s waits: %s", message.id, look.source, message.instance, why)
                if int(reply[1]):
                    touched.append(root)
        return touched

    def _gone(self, look: OutboxPage, root: str) -> None:
        """The machine was taken away, or was published anew with another number of partitions."""
        for message in look.batches[root]:
            self._catalog.forget(message.machine)
            if self._root(message) == root:
                look.fail(message, f"no machine {message.machine!r} is published there")
            else:
                look.postpone()

    def _settle(self, looks: Sequence[OutboxPage], now: str, tally: _Progress, following: dict[str, None]) -> None:
        """Take out what was dealt with; adds to ``following`` the outboxes to look into again."""
        calls: Calls = [("sb_settle", look.source, (now, *look.settled)) for look in looks if look.settled]
        replies = iter(self._ask(calls, tally))
        for look in looks:
            reply: Sequence[Any] = next(replies) if look.settled else (Status.OK, 0)
            if not reply:
                following.pop(look.source, None)
                continue
            tally.moved += int(reply[1])
            self._note(look.source, look.backlog(self._clock()))
            if look.unfinished or look.failures:
                following[look.source] = None

    def _note(self, source: str, backlog: Backlog) -> None:
        if backlog.stuck:
            self._backlogs[source] = backlog
        else:
            self._backlogs.pop(source, None)

    def _root(self, message: Message) -> str | None:
        """The partition a message is for; None where there is no such machine."""
        try:
            return self._catalog.partition(message.machine, message.instance).root
        except EngineUnavailable:
            raise
        except SignalboxError:
            return None

    def _ask(self, calls: Calls, tally: _Progress) -> list[Any]:
        """The reply to each call; None where one failed, which ``tally`` learns."""
        answers: list[Any] = []
        for (function, root, _), reply in zip(calls, self._caller.many(calls), strict=True):
            if isinstance(reply, Exception):
                tally.faults.append(_error(reply))
            elif reply[0] != Status.OK:
                tally.faults.append(EngineFault(f"{function} of {root}: {reply[1]}"))
            answers.append(None if isinstance(reply, Exception) or reply[0] != Status.OK else reply)
        return answers


def _error(error: Exception) -> SignalboxError:
    try:
        translate(error)
    except SignalboxError as translated:
        return translated
