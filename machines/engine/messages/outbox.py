"""One look at a partition's outbox: which messages can go now, which have to wait, and what came of them.

Messages to one instance go in the order they were sent. One that cannot be delivered makes those wait that are for the
same instance, or where a partition cannot be reached those for that partition, and no others. What waits is passed over
until it is time for another try.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

FIRST_PAUSE = 0.25  # seconds before a message that could not be delivered is tried again; then twice that, and so on
LONGEST_PAUSE = 10.0
FAULT_PATIENCE = 10 * 60 * 1000  # ms: what cannot be written at its receiver for so long has failed
ABSENCE_PATIENCE = 24 * 3600 * 1000  # ms: what is for a partition that cannot be reached for so long has failed

Stuck = str | tuple[str, str]  # the root of a partition, or that and an instance

DONE, FAILED = "done", "failed"


@dataclass(frozen=True, slots=True)
class Message:
    id: str
    kind: str
    machine: str
    instance: str
    body: str

    @property
    def sent(self) -> int:
        """ms since the epoch, by the clock of the server that took it."""
        return int(self.id.partition("-")[0])


@dataclass(frozen=True, slots=True)
class Backlog:
    """What waits at the head of an outbox: all that is left of it up to ``cursor`` is for one of ``stuck``.

    That stays true whoever delivers meanwhile, since new messages only come at the end. ``floors``: partition -> a
    message id at or below the oldest of its messages in there. ``until``: when to look at all of it again.
    """

    cursor: str = ""
    stuck: frozenset[Stuck] = frozenset()
    floors: Mapping[str, str] = field(default_factory=dict)
    until: float = 0.0
    pause: float = 0.0

    def begun(self, now: float) -> Backlog:
        """Where a look at ``now`` starts: behind what waits, or at the head once its pause is over."""
        return Backlog(pause=self.pause) if self.stuck and now >= self.until else self


class OutboxPage:
    """One page of an outbox: ``sort`` it, deliver ``batches``, ``judge`` the answers, settle ``settled``."""

    def __init__(self, source: str, backlog: Backlog) -> None:
        self.source = source
        self.batches: dict[str, list[Message]] = {}  # partition -> what it is given now
        self.settled: list[str] = []  # words for sb_settle
        self._backlog = backlog
        self._stuck: set[Stuck] = set(backlog.stuck)
        self._floors = dict(backlog.floors)  # partition -> its oldest message, for as far as we have looked
        self._page: list[tuple[str, Message]] = []
        self._over: set[str] = set()  # ids of messages that are dealt with
        self._unanswered = False

    @property
    def after(self) -> str:
        return self._backlog.cursor

    def sort(self, messages: Sequence[Message], root_of: Callable[[Message], str | None]) -> None:
        for message in messages:
            root = root_of(message)
            self._page.append((root or "", message))
            if root is None:
                self.fail(message, f"no machine {message.machine!r} is published")
                continue
            self._floors.setdefault(root, message.id)
            if not self._waits(root, message):
                self.batches.setdefault(root, []).append(message)

    def floor(self, root: str) -> str:
        return self._floors[root]

    def judge(self, root: str, verdicts: Sequence[str]) -> list[tuple[Message, str]]:
        """``verdicts``: a word and a reason for each message, as sb_deliver answers. Those at fault, and why."""
        batch, faults = self.batches[root], []
        for message, verdict, why in zip(batch, verdicts[::2], verdicts[1::2], strict=False):
            if verdict == "fault":
                self._stuck.add((root, message.instance))
                faults.append((message, why))
            elif verdict == FAILED:
                self.fail(message, why)
            elif verdict != "waits":
                self._settle(message, DONE, "")
        self._unanswered = self._unanswered or 2 * len(batch) > len(verdicts)
        return faults

    def unreachable(self, root: str, now: int) -> None:
        """The partition did not answer. ``now`` is in ms."""
        self._stuck.add(root)
        for message in self.batches[root]:
            if now - message.sent > ABSENCE_PATIENCE:
                self.fail(message, "its partition could not be reached for a day; it may or may not have arrived")

    def postpone(self) -> None:
        """Some messages have to be looked at again at once."""
        self._unanswered = True

    def fail(self, message: Message, why: str) -> None:
        self._settle(message, FAILED, why)

    @property
    def unfinished(self) -> bool:
        return self._unanswered

    @property
    def failures(self) -> bool:
        """Did any fail? Their senders were told, and may have sent something in turn."""
        return FAILED in self.settled[1::3]

    def backlog(self, now: float) -> Backlog:
        """What waits after this look, once its verdicts are settled."""
        left = [(root, message) for root, message in self._page if message.id not in self._over]
        if not self._stuck:
            return Backlog()
        floors = dict(self._backlog.floors)
        for root, message in left:
            floors.setdefault(root, message.id)
        done_with = self._page and not self._unanswered
        cursor = self._page[-1][1].id if done_with else self._backlog.cursor
        until, pause = self._backlog.until, self._backlog.pause
        if not self._backlog.stuck:  # this was the first page: what waits is known to wait since now
            pause = min(pause * 2 or FIRST_PAUSE, LONGEST_PAUSE)
            until = now + pause
        return Backlog(cursor, frozenset(self._stuck), floors, until, pause)

    def _waits(self, root: str, message: Message) -> bool:
        return root in self._stuck or (root, message.instance) in self._stuck

    def _settle(self, message: Message, verdict: str, why: str) -> None:
        self._over.add(message.id)
        self.settled += [message.id, verdict, why]
