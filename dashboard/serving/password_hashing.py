"""Limits concurrent password hashing: a hash is slow by design and occupies a core.

It does not hold the interpreter, so one for each request would be one core for each request: fifty logins at a time
would leave nothing to other requests. A login that comes when all places are taken waits, in a thread of the gate's;
one address has so few places that others always get through.
"""

import os
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.contrib.auth.hashers import PBKDF2PasswordHasher

AT_ONCE = max(1, (os.cpu_count() or 1) // 2)  # hashes: the other cores are for everything else
EACH, ALL = 2, 6  # logins at a time: of one address, and of everybody
MAX_WAIT = 2.0  # seconds that one more waits for a place

_hashes = threading.BoundedSemaphore(AT_ONCE)


class BoundedPBKDF2(PBKDF2PasswordHasher):
    """Django's, under its name: what was hashed with one is checked with the other."""

    def encode(self, *words: Any, **named: Any) -> str:
        with _hashes:
            return str(super().encode(*words, **named))


class TooManyLogins(Exception):
    """As many are under way as may be; no password was looked at."""


class Logins:
    """Counts the logins under way, by address. Safe to share between threads."""

    def __init__(self, each: int = EACH, all: int = ALL, max_wait: float = MAX_WAIT) -> None:
        self._each, self._all, self._max_wait = each, all, max_wait
        self._under_way: Counter[str] = Counter()
        self._changed = threading.Condition()

    @contextmanager
    def one(self, address: str) -> Iterator[None]:
        """Wait for a turn, and hold it during the block. Raises TooManyLogins."""
        until = time.monotonic() + self._max_wait
        with self._changed:
            while self._under_way[address] >= self._each or self._under_way.total() >= self._all:
                if not self._changed.wait(until - time.monotonic()):
                    raise TooManyLogins
            self._under_way[address] += 1
        try:
            yield
        finally:
            with self._changed:
                self._under_way[address] -= 1
                if not self._under_way[address]:
                    del self._under_way[address]
                self._changed.notify_all()


logins = Logins()
