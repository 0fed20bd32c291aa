"""Hears the bells of partitions: a connection to each server, subscribed to the channels of those it holds."""

import contextlib
import logging
import os
import selectors
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

import redis

from machines.engine import Engine, errors
from machines.engine.connection import subscription
from machines.engine.connection.client import FAILURES
from machines.engine.jobs.wakeups import Bell
from machines.worker.reconnect import Backoff

log = logging.getLogger(__name__)

MOST_PAUSE = 2.0  # seconds between two tries to reach a server


@dataclass(slots=True)
class HeardBells:
    """What rang since the last look. ``queues``: root -> queues; ``dues``: root -> ms of the server's clock; ``gap``:
    bells may have been missed; ``news``: a definition was published."""

    queues: dict[str, set[str]] = field(default_factory=dict)
    dues: dict[str, int] = field(default_factory=dict)
    gap: bool = False
    news: bool = False

    def __bool__(self) -> bool:
        return bool(self.queues or self.dues) or self.gap or self.news


class BellWaiter:
    """Hears in the listener's thread what a thread waits for that may be another."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._heard = HeardBells()
        self._interrupted = False

    def hear(self, bell: Bell) -> None:
        """Hear that a partition rang."""
        raise NotImplementedError

    def hear_gap(self) -> None:
        """Hear that bells may have been missed up to now."""
        with self._changed:
            self._heard.gap = True
            self._changed.notify_all()

    def hear_news(self) -> None:
        """Hear that a definition was published."""
        with self._changed:
            self._heard.news = True
            self._changed.notify_all()

    def wait(self, seconds: float) -> None:
        """Return after ``seconds``, as soon as something is heard, or when it is interrupted."""
        with self._changed:
            self._changed.wait_for(lambda: self._interrupted or bool(self._heard), seconds)

    def collect(self) -> HeardBells:
        """Return what was heard since the last call."""
        with self._changed:
            heard, self._heard = self._heard, HeardBells()
        return heard

    def interrupt(self) -> None:
        """End all waiting, also one going on in another thread."""
        with self._changed:
            self._interrupted = True
            self._changed.notify_all()


class BellListener:
    """Listens in a thread of its own, and passes on what it hears. Waiting costs a sign of life every few seconds for
    each server, however many partitions there are.

    A message that is published while a connection is down is lost. So hearers learn of each gap, when it is over;
    meanwhile ``hears`` is False.
    """

    def __init__(self, engine: Engine) -> None:
        self._wakeups = engine.wakeups
        self._client = engine.client
        self._hearers: list[BellWaiter] = []
        self._roots: Mapping[str, tuple[str, int]] = {}
        self._nodes: dict[str, subscription.NodeConnection] = {}
        self._selector = selectors.DefaultSelector()
        self._wake_read, self._wake_write = os.pipe()
        os.set_blocking(self._wake_read, False)
        os.set_blocking(self._wake_write, False)
        self._selector.register(self._wake_read, selectors.EVENT_READ)
        self._changed = self._gap = True
        self._stopped = False
        self._retry_at: float | None = None
        self._backoff = Backoff(MOST_PAUSE)
        self._logged = False
        self.hears = False
        self._thread = threading.Thread(target=self._run, name="bells", daemon=True)

    def add(self, hearer: BellWaiter) -> None:
        """Add a hearer, before the start."""
        self._hearers.append(hearer)

    def start(self) -> None:
        self._thread.start()

    def stop(self, seconds: float = 1.0) -> None:
        self._stopped = True
        self._wake()
        if self._thread.ident is not None:
            self._thread.join(seconds)

    @property
    def is_settled(self) -> bool:
        """Whether the servers have confirmed all that is listened to."""
        return self.hears and not self._changed and not self._gap

    def watch(self, roots: Mapping[str, tuple[str, int]]) -> None:
        """Listen to the bells of these partitions, given as ``Wakeups.roots`` lists them, and to no others."""
        if roots != self._roots:
            self._roots, self._changed = roots, True
            self._wake()

    def _wake(self) -> None:
        with contextlib.suppress(OSError):  # full: it is about to wake anyway
            os.write(self._wake_write, b"1")

    # The thread

    def _run(self) -> None:
        while not self._stopped:
            try:
                self._turn()
            except Exception:
                log.exception("listening for bells failed; it goes on")
                self._drop(list(self._nodes))
        self._drop(list(self._nodes))
        self._selector.close()
        os.close(self._wake_read)

    def _turn(self) -> None:
        if self._changed or (self._retry_at is not None and time.monotonic() >= self._retry_at):
            self._changed, self._retry_at = False, None
            self._connect()
        self._settle()
        for key, _ in self._selector.select(self._timeout()):
            if key.data is None:
                with contextlib.suppress(BlockingIOError):
                    os.read(self._wake_read, 4096)
            else:
                self._guard(key.data, self._read)
        for address in list(self._nodes):
            self._guard(address, lambda at: self._nodes[at].probe())

    def _timeout(self) -> float:
        if self._retry_at is None:
            return subscription.PROBE if self.hears else min(subscription.PROBE, subscription.DEADLINE)
        return max(0.0, min(subscription.PROBE, self._retry_at - time.monotonic()))

    def _settle(self) -> None:
        """Tell the hearers of a gap once all subscriptions are there."""
        ready = bool(self._nodes) and self._retry_at is None and all(node.is_ready for node in self._nodes.values())
        if ready and self._gap:
            self._gap = False
            self._backoff.reset()
            self.hears = True
            for hearer in self._hearers:
                hearer.hear_gap()

    def _connect(self) -> None:
        """Connect to the servers that hold the channels, and subscribe to what is new."""
        channels = [self._wakeups.channel(root) for root in self._roots]
        try:
            placed = self._wakeups.place([self._wakeups.definitions, *channels])
        except errors.SignalboxError as error:
            self._fail(error)
            return
        servers = {_address(server): (server, names) for server, names in placed}
        self._drop([address for address in self._nodes if address not in servers])
        for address, (server, names) in servers.items():
            if address not in self._nodes and not self._open(address, server):
                continue
            self._guard(address, lambda at, names=names: self._subscribe(at, names))  # type: ignore[misc]

    def _open(self, address: str, server: redis.Redis) -> bool:
        node = subscription.NodeConnection(server)
        try:
            socket = node.open()
        except FAILURES as error:
            node.close()
            self._fail(error)
            return False
        self._nodes[address] = node
        self._selector.register(socket, selectors.EVENT_READ, address)
        return True

    def _subscribe(self, address: str, names: Iterable[str]) -> None:
        node = self._nodes[address]
        node.subscribe(names)
        if not node.is_ready:
            self._gap = True

    def _read(self, address: str) -> None:
        for channel, text in self._nodes[address].read():
            if channel == self._wakeups.definitions:
                for hearer in self._hearers:
                    hearer.hear_news()
                continue
            bell = self._wakeups.read(channel, text.decode("utf-8", "replace"))
            for hearer in self._hearers:
                hearer.hear(bell)

    def _guard(self, address: str, act: Callable[[str], None]) -> None:
        """Run one act on a connection; drop the connection when it is broken."""
        if address not in self._nodes:
            return
        try:
            act(address)
        except FAILURES as error:
            self._drop([address])
            self._refresh()
            self._fail(error)

    def _refresh(self) -> None:
        """Ask a cluster which server holds which slots now."""
        if isinstance(self._client, redis.RedisCluster):
            with contextlib.suppress(*FAILURES):
                self._client.nodes_manager.initialize()

    def _fail(self, error: Exception) -> None:
        if isinstance(error, redis.ResponseError) and not self._logged:
            log.warning("bells cannot be heard (%s): queues are looked into every quarter of a second instead", error)
            self._logged = True
        self.hears, self._gap = False, True
        self._retry_at = time.monotonic() + self._backoff.next()

    def _drop(self, addresses: Iterable[str]) -> None:
        for address in addresses:
            node = self._nodes.pop(address)
            for key in list(self._selector.get_map().values()):
                if key.data == address:
                    self._selector.unregister(key.fileobj)
            node.close()


def _address(server: redis.Redis) -> str:
    given = server.connection_pool.connection_kwargs
    return str(given.get("path") or f"{given.get('host')}:{given.get('port')}")
