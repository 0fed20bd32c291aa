"""Due timers, and delivery of messages between instances: how machines move without a caller.

A step puts its messages into the outbox of its own partition, in the same atomic call. Any live process delivers them
to the partitions of their receivers, in three round trips however many there are: read, deliver, settle.

Delivery rule: a message is delivered at least once and applied once, in the order its sender sent it to that receiver.
The receiving partition remembers what it applied, and what it refused for good, as long as a message may come again. A
message that cannot be delivered holds back only messages for the same instance, and not forever: after ten minutes it
has failed (after a day where its partition cannot be reached at all), and the sender gets an error, as of any failure.
"""

import logging
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from redis.exceptions import NoPermissionError

from machines.engine import tracing
from machines.engine.base import return_errors
from machines.engine.connection.calls import Caller, translate
from machines.engine.connection.replies import Status
from machines.engine.errors import EngineFault, EngineUnavailable, SignalboxError
from machines.engine.jobs.clock_jump import ClockBounds, list_words
from machines.engine.jobs.group_admissions import GroupAdmissions
from machines.engine.keys import Partition, get_machine
from machines.engine.publishing.catalog import Catalog

from .outbox import FAULT_TIME, Backlog, Message, OutboxPage

log = logging.getLogger(__name__)

TIMERS = 200  # timers that one call fires at most in a partition, and jobs of a queue that it moves
TOGETHER = 100  # partitions that one call ticks
WORDS = 5  # words of a message in the reply of sb_outbox

Calls = list[tuple[str, str | tuple[str, ...], Sequence[Any]]]


@dataclass(frozen=True, slots=True)
class DeliveryLimits:
    """Limits of one call. ``rounds``: of timers that arm timers, and of messages that cause messages; ``messages``:
    how many one page of an outbox holds; ``lag``: seconds for which messages that could not be delivered are left to
    other processes."""

    rounds: int
    messages: int
    lag: float


STEADY = DeliveryLimits(40, 200, 0.0)  # for loops that call again at once while there is work
THOROUGH = DeliveryLimits(100, 200, 0.0)
EAGER = DeliveryLimits(8, 50, 60.0)  # for callers of fire, who must not wait for a partition that is away


@dataclass(slots=True)
class DeliveryReport:
    """What a call did. ``moved``: timers fired, jobs taken back or made ready, messages delivered; ``wait``: ms
    until the next of these is due, None for none; ``due``: when the next timer is due, None for none or when the
    server answered from memory; ``mail``: partitions whose outbox was not empty; ``faults``: errors of single
    partitions, while the others went on; ``lost``: roots, and the places to free there, of jobs that their workers no
    longer hold; ``dues``: root -> ms of the server's clock at which something is due next, without those where nothing
    is; ``now``: that clock; ``troubled``: partitions that had one of the faults."""

    moved: int = 0
    due: int | None = None
    wait: int | None = None
    mail: dict[str, None] = field(default_factory=dict)
    faults: list[SignalboxError] = field(default_factory=list)
    lost: list[tuple[str, list[str]]] = field(default_factory=list)
    dues: dict[str, int] = field(default_factory=dict)
    now: int = 0
    troubled: dict[str, None] = field(default_factory=dict)

    def add_fault(self, roots: Iterable[str], fault: SignalboxError) -> None:
        self.faults.append(fault)
        self.troubled |= dict.fromkeys(roots)

    def add_tick(self, root: str, now: int, rows: Sequence[Any]) -> bool:
        """Add what ``sb_tick`` answered for a partition; return whether more is due right now."""
        fired, _, jobs, timer, due, mail, *why = rows
        self.moved += int(fired) + int(jobs)
        if why and isinstance(why[-1], list):
            self.lost.append((root, list(map(str, why.pop()))))
        for each in why:
            self.add_fault([root], EngineFault(f"sb_tick of {root}: {each}"))
        if int(mail):
            self.mail[root] = None
        if timer != "" and int(timer) > now:
            self.due = int(timer) if self.due is None else min(self.due, int(timer))
        self.now = max(self.now, now)
        self.dues.pop(root, None)
        if due == "":
            return False
        self.dues[root] = int(due)
        wait = max(0, int(due) - now)
        if wait:
            self.wait = wait if self.wait is None else min(self.wait, wait)
        return wait == 0


class Delivery:
    """Fires due timers and delivers messages."""

    def __init__(self, caller: Caller, catalog: Catalog, clock: Callable[[], float] = time.monotonic) -> None:
        self._caller = caller
        self._catalog = catalog
        self._admissions = GroupAdmissions(caller)
        self._clock = clock
        self._backlogs: dict[str, Backlog] = {}
        self._apart = False

    def drive(
        self,
        partitions: Iterable[Partition],
        now: str = "",
        *,
        retry: bool = False,
        look: bool = True,
        clock: ClockBounds | None = None,
    ) -> DeliveryReport:
        """Do what is due and deliver what waits. ``retry``: also messages that could not be delivered lately.
        Without ``look`` the server's memory is trusted where it says that nothing is due. ``clock``: what is known of
        the servers' clocks."""
        report, limits = DeliveryReport(), THOROUGH if retry else STEADY
        self._tick(
            [partition.root for partition in partitions],
            (now, TIMERS, "look" if look else "", "hears", *list_words(clock)),
            report,
            limits,
        )
        self._admissions.free_lost(report.lost, now)
        if retry:
            self._backlogs.clear()
        self._deliver_all(report.mail, now, report, limits)
        return report

    def deliver(self, root: str, now: str = "") -> int:
        """Deliver the messages of a step at once, as far as that is quick; return how many were delivered."""
        report = DeliveryReport()
        self._deliver_all([root], now, report, EAGER)
        for fault in report.faults:
            log.info("messages of %s are left for a worker: %s", root, fault)
        return report.moved

    def _tick(self, roots: Sequence[str], words: Sequence[Any], report: DeliveryReport, limits: DeliveryLimits) -> None:
        """Call ``sb_tick`` for many partitions at once, where all live on one server.

        ``words``: now, limit, "look" or "", "hears", and what is known of the clock.
        """
        waiting, together = list(roots), 1 if self._caller.spread or self._apart else TOGETHER
        for _ in range(limits.rounds):
            if not waiting:
                return
            groups = [tuple(waiting[i : i + together]) for i in range(0, len(waiting), together)]
            waiting = []
            for group, reply in zip(groups, self._call([("sb_tick", g, words) for g in groups], report), strict=True):
                if reply:
                    rows = zip(group, reply[2:], strict=True)
                    waiting += [root for root, each in rows if report.add_tick(root, int(reply[1]), each)]
                elif together > 1 and isinstance(report.faults[-1].__cause__, NoPermissionError):
                    self._apart = True  # this account may not use all of the keys: call for each partition from now on
                    self._tick(roots, words, report, limits)
                    return
        if waiting:
            report.wait = 0

    def _deliver_all(self, roots: Iterable[str], now: str, report: DeliveryReport, limits: DeliveryLimits) -> None:
        """Empty these outboxes, and those that their messages fill."""
        waiting = dict.fromkeys(roots)
        for _ in range(limits.rounds):
            if not waiting:
                break
            pages, server_now, more = self._read(waiting, report, limits)
            following = dict.fromkeys(more)
            for root in self._deliver_pages(pages, now, server_now, report):
                following[root] = None
            self._settle(pages, now, report, following)
            waiting = following

    def _read(
        self, roots: Iterable[str], report: DeliveryReport, limits: DeliveryLimits
    ) -> tuple[list[OutboxPage], int, list[str]]:
        """Read the next page of each outbox; return the pages, ms of the server's clock, and the outboxes that hold
        more."""
        begun = self._clock() - limits.lag
        pages = [OutboxPage(root, self._backlogs.get(root, Backlog()).resume(begun), self._family) for root in roots]
        found, more, server_now = [], [], 0
        replies = self._call([("sb_outbox", page.source, (limits.messages, page.after)) for page in pages], report)
        for page, reply in zip(pages, replies, strict=True):
            if not reply:
                continue
            words = [str(word) for word in reply[3:]]
            page.sort([Message(*words[i : i + WORDS]) for i in range(0, len(words), WORDS)], self._root)
            server_now = int(reply[1])
            if words:
                found.append(page)
            if reply[2] == "1":
                more.append(page.source)
        return found, server_now, more

    def _deliver_pages(
        self, pages: Sequence[OutboxPage], now: str, server_now: int, report: DeliveryReport
    ) -> list[str]:
        """Deliver the batches of all pages; return the partitions whose own outboxes hold messages afterwards."""
        pairs = [(page, root) for page in pages for root in page.batches]
        at = int(now) if now else server_now
        with self._trace(pairs) as spans:
            touched = self._deliver_batches(pairs, spans, now, at, report)
            for place in list(spans):
                spans.end(place, "waits", "")
        return touched

    def _deliver_batches(
        self, pairs: Sequence[tuple[OutboxPage, str]], spans: tracing.Spans, now: str, at: int, report: DeliveryReport
    ) -> list[str]:
        calls: Calls = []
        for page, root in pairs:
            words = [w for m in page.batches[root] for w in (m.id, m.kind, m.instance, m.body)]
            head = (page.source, page.floor(root), now, max(0, at - FAULT_TIME))
            calls.append(("sb_deliver", root, (*head, *words)))
        touched: list[str] = []
        for (page, root), reply in zip(pairs, self._caller.many(calls), strict=True):
            if isinstance(reply, Exception):
                report.add_fault([page.source], return_errors(translate, reply))
                page.unreachable(root, at)
            elif reply[0] == Status.NO_MACHINE:
                self._handle_missing(page, root)
            elif reply[0] != Status.OK:
                report.add_fault([page.source], EngineFault(f"messages for {root}: {reply[1]}"))
                page.unreachable(root, at)
            else:
                results = self._deliver_elsewhere(page, root, [str(word) for word in reply[2:]], now, at, touched)
                for number, answer in enumerate(zip(results[::2], results[1::2], strict=True)) if spans else ():
                    spans.end((page.source, root, number), *answer)
                for message, why in page.judge(root, results):
                    log.warning("message %s of %s for %s waits: %s", message.id, page.source, message.instance, why)
                if int(reply[1]):
                    touched.append(root)
        return touched

    @staticmethod
    def _trace(pairs: Iterable[tuple[OutboxPage, str]]) -> tracing.Spans:
        """Begin the spans of the messages that are in a trace, by outbox, receiving partition and place. The messages
        go on with these."""
        found = tracing.Spans()
        for page, root in pairs if tracing.find_tracer() else ():
            batch = page.batches[root]
            for place, message in enumerate(batch):
                span, body = tracing.Delivery.begin(message.kind, message.machine, message.instance, message.body)
                if span is not None:
                    found[page.source, root, place] = span
                    batch[place] = replace(message, body=body)
        return found

    def _deliver_elsewhere(
        self, page: OutboxPage, root: str, results: list[str], now: str, at: int, touched: list[str]
    ) -> list[str]:
        """Deliver messages for instances that have moved, to the partitions that hold them now; return the results
        with theirs. The oldest message for the machine is a floor there, too."""
        batch, moved = page.batches[root], dict[str, list[int]]()
        for number, (verdict, why) in enumerate(zip(results[::2], results[1::2], strict=True)):
            if verdict == "moved":
                moved.setdefault(why, []).append(number)
        if not moved:
            return results
        head = (page.source, page.floor(root), now, max(0, at - FAULT_TIME))
        calls: Calls = []
        for there, numbers in moved.items():
            words = [w for n in numbers for w in (batch[n].id, batch[n].kind, batch[n].instance, batch[n].body)]
            calls.append(("sb_deliver", there, (*head, *words)))
        for (there, numbers), reply in zip(moved.items(), self._caller.many(calls), strict=True):
            found = [] if isinstance(reply, Exception) or reply[0] != Status.OK else [str(word) for word in reply[2:]]
            if found and int(reply[1]):
                touched.append(there)
            for place, number in enumerate(numbers):
                outcome, why = found[2 * place : 2 * place + 2] or ("fault", f"{there} did not answer")
                results[2 * number : 2 * number + 2] = ("waits", "") if outcome == "moved" else (outcome, why)
        return results

    def _handle_missing(self, page: OutboxPage, root: str) -> None:
        """Fail the messages of a machine that was deleted; retry those of a machine that was published anew with
        another number of partitions."""
        for message in page.batches[root]:
            self._catalog.forget(message.machine)
            if self._root(message) == root:
                page.fail(message, f"no machine {message.machine!r} is published there")
            else:
                page.postpone()

    def _settle(
        self, pages: Sequence[OutboxPage], now: str, report: DeliveryReport, following: dict[str, None]
    ) -> None:
        """Remove settled messages from their outboxes; add the outboxes to read again to ``following``."""
        calls: Calls = [("sb_settle", page.source, (now, *page.settled)) for page in pages if page.settled]
        replies = iter(self._call(calls, report))
        for page in pages:
            reply: Sequence[Any] = next(replies) if page.settled else (Status.OK, 0)
            if not reply:
                following.pop(page.source, None)
                continue
            report.moved += int(reply[1])
            self._remember(page.source, page.backlog(self._clock()))
            if page.unfinished or page.failures:
                following[page.source] = None

    def _remember(self, source: str, backlog: Backlog) -> None:
        if backlog.stuck:
            self._backlogs[source] = backlog
        else:
            self._backlogs.pop(source, None)

    def _root(self, message: Message) -> str | None:
        """Return the partition a message is for; None where there is no such machine."""
        try:
            return self._catalog.find_receiver(message.machine, message.instance, message.sent).root
        except EngineUnavailable:
            raise
        except SignalboxError:
            return None

    def _family(self, root: str) -> str:
        """Return the machine of a partition whose machine has grown, else the partition: the oldest message for the
        machine is a floor for each of its partitions, whichever way its messages come."""
        machine = get_machine(root)
        return machine if machine and self._catalog.find_growth(machine) is not None else root

    def _call(self, calls: Calls, report: DeliveryReport) -> list[Any]:
        """Return the reply to each call, None for one that failed, whose error is added to ``report``."""
        answers: list[Any] = []
        for (function, root, _), reply in zip(calls, self._caller.many(calls), strict=True):
            roots = (root,) if isinstance(root, str) else root
            if isinstance(reply, Exception):
                report.add_fault(roots, return_errors(translate, reply))
            elif reply[0] != Status.OK:
                report.add_fault(roots, EngineFault(f"{function} of {root}: {reply[1]}"))
            answers.append(None if isinstance(reply, Exception) or reply[0] != Status.OK else reply)
        return answers
