"""Records when people and tokens were last seen: in a write buffer during a request, to SQL in batches.

A request is never refused for it: where Redis does not answer, nothing is noted. A person is noted once a minute in
each process, with the requests since the last time; a token at each use.
"""

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

from django.contrib.auth import get_user_model
from django.db import DataError, Error, IntegrityError, transaction
from django.utils import timezone

from machines.conf.database import DatabaseDuty, delete_some
from machines.connections import get_pattern, is_spread
from machines.engine.errors import EngineFault, EngineUnavailable, SignalboxError
from machines.patterns import Batch, Entry, Lost, Stats, WriteBuffer

from .models import LastSeen, Receipt, Token

log = logging.getLogger(__name__)

EVERY = 60.0  # s between two notes of one person in one process
AWAY = 10.0  # s for which nothing is noted after Redis did not answer
MOST = 10_000  # people a process remembers
GATHER = 15.0  # s that an entry waits for more, so that an active person is one row of a batch
RECEIPTS_KEPT = timedelta(days=3)  # an entry comes again within its lease, or from a file no older than this
MAX_PK, MAX_MORE = 2**63, 2**31  # what a database counts to, and more than an entry ever gathers
AT_ONCE = 5_000  # receipts one run removes at most
LIMIT = 500  # entries of one transaction
LEASE = 60.0  # s: far longer than a transaction takes


def buffer() -> WriteBuffer:
    """Return the buffer of this process."""
    return get_pattern(WriteBuffer, "seen")


class Noting:
    """What one process notes. ``clock``: monotonic seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._people: dict[int, tuple[float, int]] = {}  # when noted last, and requests since
        self._away = 0.0

    def person(self, pk: int) -> None:
        with self._lock:
            now = self._clock()
            noted, requests = self._people.get(pk, (None, 0))
            is_due = noted is None or now - noted >= EVERY
            if not is_due and noted is not None:
                self._people[pk] = (noted, requests + 1)
                return
            if len(self._people) >= MOST:
                self._people = {pk: held for pk, held in self._people.items() if now - held[0] < EVERY}
            self._people[pk] = (now, 0)
        self._add(f"user:{pk}", requests + 1)

    def token(self, pk: int) -> None:
        self._add(f"token:{pk}", 1)

    def _add(self, entity: str, count: int) -> None:
        if self._clock() < self._away:
            return
        try:
            buffer().add(entity, counters={"n": count}, fields={"at": round(time.time() * 1000)})
        except SignalboxError as error:
            self._away = self._clock() + AWAY
            log.debug("%s was seen, which could not be noted: %s", entity, error)


noting = Noting()


def write(batch: Batch) -> None:
    """Write all of it or nothing; entries that have been written before are left out."""
    with transaction.atomic():
        known = set(
            Receipt.objects.filter(entry__in=[each.id for each in batch.entries]).values_list("entry", flat=True)
        )
        fresh = [each for each in batch.entries if each.id not in known]
        Receipt.objects.bulk_create([Receipt(entry=each.id) for each in fresh])
        _write_people(_count_last("user", fresh))
        _write_tokens(_count_last("token", fresh))


class SeenFlush(DatabaseDuty):
    """Writes batches of the buffer. ``gather``: seconds that an entry waits for more to come.

    A database that is away costs a line in the log and nothing else: what was claimed goes back and waits.
    """

    MESSAGE = "who was last seen waits for the database: %s"

    def __init__(self, gather: float = GATHER) -> None:
        self._gather = gather

    def look(self) -> bool:
        """Write one batch. Tell whether there may be more."""
        held = buffer()
        batch = held.claim(limit=LIMIT, lease=LEASE, gather=self._gather)
        if batch is None:
            return False
        try:
            write(batch)
        except Error as error:
            if not isinstance(error, (DataError, IntegrityError)):  # not for what is in it: the database is away
                with contextlib.suppress(SignalboxError):  # it comes back when its lease ends
                    held.give_back(batch)
            raise
        try:
            held.settle(batch)
        except Lost as error:
            log.info("last seen: it took longer than its lease, and is written once nevertheless: %s", error)
        return True


def read_waiting() -> Stats | None:
    """Return what is not written yet; None where the buffer cannot be read, or its shard of a cluster does not answer.
    Raises EngineUnavailable."""
    try:
        return buffer().stats()
    except EngineUnavailable as error:
        if not is_spread():
            raise
        log.warning("the buffer of last seen does not answer: %s", error)
    except EngineFault as error:
        log.warning("the buffer of last seen cannot be read: %s", error)
    return None


def prune() -> int:
    """Remove receipts that nothing comes back for, some at a time; how many."""
    return delete_some(Receipt.objects.filter(at__lt=timezone.now() - RECEIPTS_KEPT), AT_ONCE)


def _count_last(kind: str, entries: Iterable[Entry]) -> dict[int, tuple[int, datetime]]:
    """Return primary key -> how often and when last; a batch may hold several entries of one."""
    found: dict[int, tuple[int, datetime]] = {}
    for entry in entries:
        named, _, text = entry.entity.partition(":")
        try:
            pk, more, at = int(text), entry.counters["n"], datetime.fromtimestamp(entry.fields["at"] / 1000, UTC)
        except (ValueError, KeyError, TypeError, OverflowError) as error:
            log.error("last seen: the entry %s is of nobody and is left out: %r", entry.id, error)
            continue
        if not 0 <= more < MAX_MORE or not 0 < pk < MAX_PK:
            log.error("last seen: the entry %s is of nobody and is left out: %d of %d", entry.id, more, pk)
        elif named == kind:
            count, last = found.get(pk, (0, at))
            found[pk] = (count + more, max(last, at))
    return found


def _write_people(seen: dict[int, tuple[int, datetime]]) -> None:
    rows = {row.user_id: row for row in LastSeen.objects.select_for_update().filter(user__in=seen).order_by("pk")}
    there: Any = get_user_model()._default_manager.filter(pk__in=seen.keys() - rows.keys()).values_list("pk", flat=True)
    for pk, row in rows.items():
        row.requests, row.at = row.requests + seen[pk][0], max(row.at, seen[pk][1])
    LastSeen.objects.bulk_update(rows.values(), ["requests", "at"], batch_size=200)
    LastSeen.objects.bulk_create([LastSeen(user_id=pk, requests=seen[pk][0], at=seen[pk][1]) for pk in there])


def _write_tokens(used: dict[int, tuple[int, datetime]]) -> None:
    rows = list(Token.objects.select_for_update().filter(pk__in=used).order_by("pk"))
    for row in rows:
        count, at = used[row.pk]
        row.uses, row.last_used = row.uses + count, max(row.last_used or at, at)
    Token.objects.bulk_update(rows, ["uses", "last_used"], batch_size=200)
