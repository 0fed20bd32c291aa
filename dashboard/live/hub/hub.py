"""The hub of an ASGI process and event loop: receives notifications, reads what changed, and gives it to the sockets.

It starts with the first socket and ends with the last. Whatever goes wrong with Redis ends the current link; the
sockets get "stale", and the next connection begins with reading everything again.
"""

import asyncio
import contextlib
import logging
import random
import time
from collections.abc import Callable

from redis.exceptions import RedisError

from dashboard.live import messages
from dashboard.live.limits import Limits, limits
from dashboard.live.messages import ErrorCode, Frame
from dashboard.live.outbox import Direct, Outbox, OutboxWriter
from dashboard.live.topics import Topic
from dashboard.shared.concurrency_limits import PerLoop
from machines.audit.request_context import run_in_own_context
from machines.conf import conf
from machines.connections import get_prefix
from machines.engine.connection.server_permissions import find_denial
from machines.engine.errors import NotPermitted, SignalboxError
from machines.engine.keys import Keys

from .connections import HubConnections
from .feeds import Feeds, Full
from .sources import Source, World

log = logging.getLogger(__name__)
LIVE, STALE = "live", "stale"
UNREACHABLE = "Redis does not answer; the snapshot follows when it does"


class ReadSchedule:
    """Decides when a partition that sent a pulse is read: due times by its root, on a monotonic clock that the caller
    brings (seconds).

    A step rings at most once in 50 ms; the steps of the next 50 ms are silent. So each ring asks for two reads: one at
    once, which has the step that rang, and one ``settle`` later, which has the silent ones. A later ring moves the
    second read: its own first read has them, too, and a partition that rings all the time is read once for each ring.
    """

    def __init__(self, settle: float) -> None:
        self._settle = settle
        self._due: dict[str, tuple[float, float]] = {}  # root -> the next read, and the last one asked for

    def ring(self, root: str, now: float) -> None:
        first, _ = self._due.get(root, (now, now))
        self._due[root] = (min(first, now), now + self._settle)

    def next(self) -> float | None:
        """Return when the next read is due; None while everything is quiet."""
        return min((first for first, _ in self._due.values()), default=None)

    def take(self, now: float) -> set[str]:
        """Take the roots to read now. Those whose silent steps are not over stay in the schedule."""
        ripe = {root for root, (first, _) in self._due.items() if first <= now}
        for root in ripe:
            _, last = self._due.pop(root)
            if last > now:
                self._due[root] = (last, last)
        return ripe

    def clear(self) -> None:
        self._due.clear()


class ThreadTime:
    """Measures from its making how long an operation took without the time that the thread spent on other work: a loop
    that sends to a thousand sockets while it awaits an answer is not kept waiting by the server that gives it."""

    def __init__(
        self, clock: Callable[[], float] = time.monotonic, busy: Callable[[], float] = time.thread_time
    ) -> None:
        self._clock, self._busy = clock, busy
        self._began, self._worked = clock(), busy()

    def seconds(self, spare: float) -> float:
        """Return the seconds since then, without up to ``spare`` seconds of this thread's own work."""
        worked = max(0.0, self._busy() - self._worked)
        return max(0.0, self._clock() - self._began - min(worked, spare))


class Hub:
    def __init__(self, url: str, keys: Keys, limits: Limits, clock: Callable[[], float] = time.monotonic) -> None:
        self._url = url
        self._keys = keys
        self._limits = limits
        self._clock = clock
        self._outboxes: set[Outbox] = set()
        self._writer = OutboxWriter(limits.slice)
        self._feeds = Feeds(keys, most=limits.topics)
        self._read_schedule = ReadSchedule(limits.settle)
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._state: str | None = None  # unknown until Redis was tried once
        self.denied: NotPermitted | None = None  # what the account lacks, if that is why nothing is read
        self._run_ids: frozenset[str] = frozenset()
        self._reconcile_at = 0.0
        self._has_news = False  # a definition was published since the last reading of everything began
        self._rest_until = 0.0

    @property
    def sockets(self) -> int:
        return len(self._outboxes)

    @property
    def well(self) -> bool:
        """Does it serve those it has? A hub without sockets does not run; it starts with the first socket."""
        return self._task is None or (not self._task.done() and self._state != STALE)

    # What sockets ask for

    def enter(self, owner: str = "", direct: Direct | None = None) -> Outbox | None:
        """Make an outbox for a new socket; return None when the process holds as many as it may. ``direct``: its
        connection, if the server lets frames be written to it at once."""
        if len(self._outboxes) >= self._limits.sockets:
            return None
        outbox = Outbox(
            self._feeds.snapshot, notices=self._limits.notices, owner=owner, direct=direct, writer=self._writer
        )
        self._outboxes.add(outbox)
        if self._state is not None:
            outbox.status(self._make_status(), good=self._state == LIVE)
        if self._task is None:
            self._feeds.turn()
            self._task = asyncio.create_task(self._run(), name="live hub", context=run_in_own_context())
        return outbox

    async def exit(self, outbox: Outbox) -> None:
        """Remove the outbox of a socket that is gone and has left its topics. The last one closes the hub."""
        outbox.detach()
        self._outboxes.discard(outbox)
        if not self._outboxes and self._task is not None:
            task, self._task, self._state = self._task, None, None
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    def subscribe(self, outbox: Outbox, topic: Topic) -> None:
        """Subscribe the outbox to the topic. Raises Full."""
        self._feeds.join(outbox, topic)
        if self._state == STALE and not self._feeds.has(topic):
            why = UNREACHABLE if self.denied is None else str(self.denied)
            outbox.notice(messages.encode(messages.error(ErrorCode.UNAVAILABLE, why, str(topic))))
        self._wake.set()

    def unsubscribe(self, outbox: Outbox, topic: Topic) -> None:
        self._feeds.leave(outbox, topic)

    def find_disclosed(self, topic: Topic) -> tuple[str, frozenset[str]]:
        """Return the instance that a topic is about, and which of its sensitive names the topic has shown in clear."""
        return self._feeds.find_disclosed(topic)

    # One life of a link after the other

    async def _run(self) -> None:
        attempt = 0
        while True:
            link = HubConnections(self._url, self._keys, self._limits, self._ring, self._note_publication)
            try:
                await link.open()
                attempt = 0
                await self._serve(link)
            except (RedisError, OSError, SignalboxError) as error:
                denied = find_denial(error)
                if denied is not None and self.denied is None:
                    log.error("the live view cannot read Redis: %s", denied)
                elif denied is None and self._state != STALE:
                    log.warning("the live view lost Redis: %s", error)
                self.denied = denied
            except Exception:
                log.exception("the live view failed; it starts again")
            finally:
                await _close(link)
            self._mark_stale()
            _check_cancellation()
            await asyncio.sleep(random.uniform(0, min(self._limits.backoff, 0.1 * 2**attempt)))  # noqa: S311
            attempt = min(attempt + 1, 16)

    async def _serve(self, link: HubConnections) -> None:
        self._read_schedule.clear()
        self._reconcile_at = self._rest_until = self._clock()
        while True:
            link.check()
            await link.listen_to(self._feeds.roots())
            await self._read(link)
            await self._wait()

    async def _read(self, link: HubConnections) -> None:
        now = self._clock()
        if now < self._rest_until:
            return
        reconcile = now >= self._reconcile_at or self._has_news or link.take_change()
        wanted = self._choose_first() | self._feeds.of(self._read_schedule.take(now))
        if reconcile:
            self._has_news = False
            await self._probe(link)
            wanted |= {source for source in self._feeds.plan() if not source.constant or self._feeds.is_lost(source)}
            wanted = wanted - self._feeds.list_unread() | self._choose_first()
        if not (wanted or reconcile or self._feeds.is_waiting()):
            return
        waiting = ThreadTime(self._clock)
        seen = await link.read(list(wanted))
        took = waiting.seconds(spare=self._compute_gap())
        await self._take(seen)
        self._rest_until = now + self._compute_rest(len(wanted), took)
        if reconcile:
            self._reconcile_at = now + (self._limits.reconcile if link.hints else self._limits.reconcile_without_hints)
            self._mark_live()

    def _choose_first(self) -> set[Source]:
        return self._feeds.first(self._limits.first_reads)

    async def _take(self, seen: World) -> None:
        """Offer what was read. Other work that waits for the loop gets its turn in between."""
        began = self._clock()
        for topic in self._feeds.lay(seen):
            self._feeds.offer(topic)
            if self._clock() - began > self._limits.slice:
                await asyncio.sleep(0)
                began = self._clock()

    def _compute_rest(self, count: int, took: float) -> float:
        """Return the seconds from the start of a read to the earliest next one. ``took``: seconds until its answer,
        without the sending: what is read goes out to every socket."""
        longest = self._limits.read_rest * max(1.0, count / self._limits.read_many)
        return max(self._limits.read_gap, self._compute_gap(), min(took / self._limits.read_share, longest))

    def _compute_gap(self) -> float:
        """Return the seconds between two reads that keep the sending to every socket within its share."""
        return self.sockets / self._limits.frames

    async def _probe(self, link: HubConnections) -> None:
        await link.probe()
        if self._run_ids and link.run_ids - self._run_ids:  # a server that is only away changes nothing
            self._feeds.turn()
        self._run_ids |= link.run_ids

    async def _wait(self) -> None:
        """Wait until something is due or the hub is woken."""
        _check_cancellation()
        now = self._clock()
        due = [self._reconcile_at, self._read_schedule.next() or self._reconcile_at]
        if self._has_news or self._feeds.is_waiting() or self._feeds.list_unread():
            due.append(now)
        pause = max(min(due), self._rest_until) - now
        if pause > 0:
            # Not wait_for: in Python 3.11 it swallows a cancellation that comes together with the event.
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self._wake.wait()
        self._wake.clear()

    def _ring(self, root: str) -> None:
        if root:
            self._read_schedule.ring(root, self._clock())
        self._wake.set()

    def _note_publication(self) -> None:
        """Make the hub read now which machines there are and which versions are current. A hub that missed the message
        does so with the next reconcile."""
        self._has_news = True
        self._wake.set()

    # What sockets learn about Redis itself

    def _mark_live(self) -> None:
        self._state, self.denied = LIVE, None
        self._send_status()

    def _mark_stale(self) -> None:
        self._state = STALE
        self._send_status()

    def _send_status(self) -> None:
        frame = self._make_status()
        for outbox in self._outboxes:
            outbox.status(frame, good=self._state == LIVE)

    def _make_status(self) -> Frame:
        state = self._state or STALE
        every = self._limits.reconcile if state == LIVE else self._limits.backoff
        return messages.encode(messages.status(state, epoch=self._feeds.epoch, at=self._feeds.at, every=every))


def _check_cancellation() -> None:
    """Raise CancelledError if the task was cancelled and did not notice: redis-py sends with ``wait_for``, which in
    Python 3.11 loses a cancellation when what it waits for is done at the same moment."""
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        raise asyncio.CancelledError


async def _close(link: HubConnections) -> None:
    with contextlib.suppress(RedisError, OSError):
        await link.close()


hub = PerLoop(lambda: Hub(conf.REDIS_URL, Keys(get_prefix()), limits()))
"""Returns the hub of the running event loop."""


def sockets() -> int:
    """Count the open sockets of this process."""
    return sum(found.sockets for found in _list_hubs())


def well() -> bool:
    """Do all hubs of this process serve their sockets? Any thread may ask."""
    return all(found.well for found in _list_hubs())


def denial() -> NotPermitted | None:
    """Return what the account on Redis lacks, if a hub of this process cannot read for that reason."""
    return next((found.denied for found in _list_hubs() if found.denied is not None), None)


def _list_hubs() -> list[Hub]:
    """Return the hubs of loops that are open. A hub whose loop was closed under its sockets serves nobody, and is gone
    soon."""
    return [found for loop, found in list(hub.kept.items()) if not loop.is_closed()]


__all__ = ["Full", "Hub", "denial", "hub", "sockets", "well"]
