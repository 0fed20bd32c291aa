"""Records when people and tokens were last seen: once a minute in each process, with the requests since the last time.

A request is never refused for it: where the database does not take it, it is recorded with a later request.
"""

import logging
import threading
import time
from collections.abc import Callable

from django.db import Error, transaction
from django.db.models import F
from django.utils import timezone

from machines.conf.database import wait_briefly

from .models import LastSeen, Token

log = logging.getLogger(__name__)

EVERY = 60.0  # s between two records of one person or token in one process
AWAY = 10.0  # s for which nothing is recorded after the database refused
LOCK_WAIT = 0.1  # s that a request, which mostly reads alone, waits for the write lock of SQLite
MOST = 10_000  # people and tokens a process remembers

Write = Callable[[int, int], None]


class Noting:
    """What one process notes. ``clock``: monotonic seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._held: dict[tuple[Write, int], tuple[float, int]] = {}  # when recorded last, and requests since
        self._away_until = -float("inf")

    def person(self, pk: int) -> None:
        self._note(_write_person, pk)

    def token(self, pk: int) -> None:
        self._note(_write_token, pk)

    def _note(self, write: Write, pk: int) -> None:
        with self._lock:
            now = self._clock()
            recorded, requests = self._held.get((write, pk), (-float("inf"), 0))
            if now - recorded < EVERY or now < self._away_until:
                self._held[write, pk] = recorded, requests + 1
                return
            if len(self._held) >= MOST:
                self._held = {key: held for key, held in self._held.items() if now - held[0] < EVERY}
            self._held[write, pk] = now, 0
        try:
            with wait_briefly(LOCK_WAIT), transaction.atomic():
                write(pk, requests + 1)
        except Error as error:
            log.debug("%s %d could not be recorded: %s", write.__name__, pk, error)
            with self._lock:
                self._away_until = now + AWAY
                _, since = self._held.get((write, pk), (now, 0))
                self._held[write, pk] = recorded, since + requests + 1


noting = Noting()


def _write_person(pk: int, requests: int) -> None:
    at = timezone.now()
    if not LastSeen.objects.filter(user=pk).update(requests=F("requests") + requests, at=at):
        LastSeen.objects.create(user_id=pk, requests=requests, at=at)


def _write_token(pk: int, uses: int) -> None:
    Token.objects.filter(pk=pk).update(uses=F("uses") + uses, last_used=timezone.now())
