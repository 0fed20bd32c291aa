"""One page of a partition's outbox: which messages can go now, which wait, and which were settled.

Messages to one instance go in the order they were sent. A message that cannot be delivered holds back those for the
same instance, or, where its partition cannot be reached, those for that partition, and no others. Messages that wait
are skipped until the next try is due.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

FIRST_PAUSE = 0.25  # seconds before a message that could not be delivered is tried again; doubled with each further try
LONGEST_PAUSE = 10.0
FAULT_TIME = 10 * 60 * 1000  # ms after which a message that cannot be written at its receiver has failed
ABSENCE_TIME = 24 * 3600 * 1000  # ms after which a message for an unavailable partition has failed

Stuck = str | tuple[str, str]  # the root of a partition, or that and an instance

DONE, FAILED = "done", "failed"


@dataclass(frozen=True, slots=True)
class Message:
    """A message in an outbox."""

    id: str
    kind: str
    machine: str
    instance: str
    body: str

    @property
    def sent(self) -> int:
        """Return ms since the epoch, by the clock of the server that stored the message."""
        return int(self.id.partition("-")[0])


@dataclass(frozen=True, slots=True)
class Backlog:
    """The messages that wait at the head of an outbox: all that are left of it up to ``cursor`` are for one of
    ``stuck``.

    This stays true while other processes deliver, since new messages only come at the end. ``floors``: partition -> a
    message id at or below the oldest of its messages here. ``until``: when to try all of them again.
    """

    cursor: str = ""
    stuck: frozenset[Stuck] = frozenset()
    floors: Mapping[str, str] = field(default_factory=dict)
    until: float = 0.0
    pause: float = 0.0

    def resume(self, now: float) -> Backlog:
        """Return where a page read at ``now`` starts: after the waiting messages, or at the head once their pause is
        over."""
        return Backlog(pause=self.pause) if self.stuck and now >= self.until else self


class OutboxPage:
    """One page of an outbox: ``sort`` its messages, deliver ``batches``, ``judge`` the answers, settle ``settled``."""

    def __init__(self, source: str, backlog: Backlog, family: Callable[[str], str] = str) -> None:
        """Hold messages. ``family``: of a partition, which shares the oldest message with the others of a machine that
        grows."""
        self.source = source
        self.batches: dict[str, list[Message]] = {}  # partition -> messages to deliver now
        self.settled: list[str] = []  # words for sb_settle
        self._backlog = backlog
        self._stuck: set[Stuck] = set(backlog.stuck)
        self._floors = dict(backlog.floors)  # partition -> its oldest message among those read
        self._page: list[tuple[str, Message]] = []
        self._family = family
        self._settled_ids: set[str] = set()  # ids of settled messages
        self._unanswered = False

    @property
    def after(self) -> str:
        """Return the cursor after which the page begins."""
        return self._backlog.cursor

    def sort(self, messages: Sequence[Message], root_of: Callable[[Message], str | None]) -> None:
        """Sort messages into batches by partition; those behind a stuck message wait."""
        for message in messages:
            root = root_of(message)
            self._page.append((root or "", message))
            if root is None:
                self.fail(message, f"no machine {message.machine!r} is published")
                continue
            self._floors.setdefault(self._family(root), message.id)
            if not {root, (root, message.instance)} & self._stuck:
                self.batches.setdefault(root, []).append(message)

    def floor(self, root: str) -> str:
        """Return the id of the oldest message for a partition."""
        return self._floors[self._family(root)]

    def judge(self, root: str, results: Sequence[str]) -> list[tuple[Message, str]]:
        """Read the results of ``sb_deliver``, a word and a reason for each message; return the messages at fault,
        and why."""
        batch, faults = self.batches[root], []
        for message, verdict, why in zip(batch, results[::2], results[1::2], strict=False):
            if verdict == "fault":
                self._stuck.add((root, message.instance))
                faults.append((message, why))
            elif verdict == FAILED:
                self.fail(message, why)
            elif verdict != "waits":
                self._settle(message, DONE, "")
        self._unanswered = self._unanswered or 2 * len(batch) > len(results)
        return faults

    def unreachable(self, root: str, now: int) -> None:
        """Record that a partition did not answer; fail its messages older than a day. ``now`` is in ms."""
        self._stuck.add(root)
        for message in self.batches[root]:
            if now - message.sent > ABSENCE_TIME:
                self.fail(message, "its partition could not be reached for a day; it may or may not have arrived")

    def postpone(self) -> None:
        """Record that some messages have to be read again at once."""
        self._unanswered = True

    def fail(self, message: Message, why: str) -> None:
        self._settle(message, FAILED, why)

    @property
    def unfinished(self) -> bool:
        """Tell whether messages have to be read again at once."""
        return self._unanswered

    @property
    def failures(self) -> bool:
        """Tell whether any message failed: its sender got an error, and may have sent messages in turn."""
        return FAILED in self.settled[1::3]

    def backlog(self, now: float) -> Backlog:
        """Return the messages that wait after this page, once its results are settled."""
        left = [(root, message) for root, message in self._page if message.id not in self._settled_ids]
        if not self._stuck:
            return Backlog()
        floors = dict(self._backlog.floors)
        for root, message in left:
            floors.setdefault(self._family(root), message.id)
        done_with = self._page and not self._unanswered
        cursor = self._page[-1][1].id if done_with else self._backlog.cursor
        until, pause = self._backlog.until, self._backlog.pause
        if not self._backlog.stuck:  # the first page: these messages wait since now
            pause = min(pause * 2 or FIRST_PAUSE, LONGEST_PAUSE)
            until = now + pause
        return Backlog(cursor, frozenset(self._stuck), floors, until, pause)

    def _settle(self, message: Message, verdict: str, why: str) -> None:
        self._settled_ids.add(message.id)
        self.settled += [message.id, verdict, why]
