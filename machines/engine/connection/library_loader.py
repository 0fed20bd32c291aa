"""Puts the functions library onto the server, and never an older one over a newer one.

Several releases may run on one server at once, as they do while a new one is rolled out. The library says its release
number: a process loads its own only where there is none or one with a lower number, and works with a newer one as it
is, because a newer library answers the calls of the release before. Of one number (two states of a release in
development) a process loads its own at its start, and once more if a function is missing: they never load in turn.

A lock key on each server makes sure that between reading the number and loading nobody else loads.
"""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import redis
from redis import exceptions

from machines.engine.errors import EngineFault
from machines.engine.keys import Keys

from . import library, routing, waiting
from .client import Client

MISSING = "Function not found"
LOCK_MS = 10_000  # a load takes some 60 ms
LOCK_WAIT = 0.02  # seconds between two looks at a lock that another process holds
MOST_TAGS = 4096  # hash tags tried to find a lock key that a node of a cluster owns
GONE = (exceptions.ConnectionError, exceptions.TimeoutError, OSError)

log = logging.getLogger(__name__)
_reported: set[int] = set()  # release numbers of newer libraries that the log has named


@dataclass(frozen=True, slots=True)
class Held:
    """The library that a server holds. ``number``: its release number, 0 for one of before there were numbers."""

    number: int
    fingerprint: str

    @property
    def is_ours(self) -> bool:
        return self.number == library.RELEASE and self.fingerprint == library.fingerprint()


Choice = Callable[[Held | None], bool]
"""Tells whether a library that a server holds, or None, has to be replaced by this process's own."""


class LibraryLoader:
    """Loads the library on the server, or on each primary of a cluster. Safe to share between threads."""

    def __init__(self, client: Client, keys: Keys) -> None:
        self._client = client
        self._keys = keys
        self._lock = waiting.Lock()
        self._replaced_same = False

    def ensure(self) -> None:
        """Load the library where there is none, an older one, or another one of the same number.

        On a cluster a primary that is away is left out: the first call that meets it without a library loads it. Raises
        what redis-py raises.
        """
        with self._lock:
            self._on_each(lambda held: held is None or (held.number <= library.RELEASE and not held.is_ours))

    def replace(self) -> None:
        """Load the library, unless a newer one is there."""
        with self._lock:
            self._on_each(lambda held: held is None or held.number <= library.RELEASE)

    def require(self) -> None:
        """Load the library where there is none."""
        with self._lock:
            self._on_each(lambda held: held is None)

    def load_missing(self) -> None:
        """Load the library because a function is missing on a server. Raises EngineFault where another one stays."""
        with self._lock:
            stays: list[Held] = []

            def is_wanted(held: Held | None) -> bool:
                if held is None or held.number < library.RELEASE:
                    return True
                if held.number == library.RELEASE and not held.is_ours and not self._replaced_same:
                    return True
                if not held.is_ours:
                    stays.append(held)
                return False

            replaced = self._on_each(is_wanted)
            self._replaced_same = self._replaced_same or any(
                held and held.number == library.RELEASE for held in replaced
            )
            if stays and not replaced:
                raise EngineFault(
                    f"the library on the server (release {stays[0].number}, {stays[0].fingerprint}) lacks a function "
                    f"that this program calls (release {library.RELEASE}, {library.fingerprint()})"
                )

    def read(self) -> list[Held | None]:
        """Return what the server holds, or each primary of a cluster."""
        return [read_held(node) for node in routing.list_nodes(self._client)]

    def _on_each(self, is_wanted: Choice) -> list[Held | None]:
        """Load on each server whose library ``is_wanted`` says to replace; return what was replaced there."""
        replaced: list[Held | None] = []
        gone: list[Exception] = []
        nodes = routing.list_nodes(self._client)
        for node in nodes:
            try:
                held = read_held(node)
                if is_wanted(held) and _load_locked(node, self._find_lock(node), is_wanted):
                    replaced.append(held)
                elif held is not None:
                    _report(held)
            except GONE as error:
                gone.append(error)
        if gone and len(gone) == len(nodes):
            raise gone[0]
        return replaced

    def _find_lock(self, node: redis.Redis) -> str | None:
        """Return the key of the lock for this server, on a cluster one in a slot of its own; None if it has no slot."""
        if not isinstance(self._client, redis.RedisCluster):
            return self._keys.library_lock(0)
        for tag in range(MOST_TAGS):
            key = self._keys.library_lock(tag)
            owner = self._client.get_node_from_key(key)  # type: ignore[no-untyped-call]
            if owner is not None and self._client.get_redis_connection(owner) is node:
                return key
        return None


def read_held(node: redis.Redis) -> Held | None:
    """Ask one server for its library; None where it has none."""
    try:
        answer = node.execute_command("FCALL_RO", "sb_library", 0, "release")  # type: ignore[no-untyped-call]
    except exceptions.ResponseError as error:
        if MISSING in str(error):
            return None
        raise
    return read_answer(answer)


def read_answer(answer: Any) -> Held:
    """Read what ``sb_library`` answers: libraries without a number answer their fingerprint alone."""
    if isinstance(answer, list):
        return Held(int(answer[0]), str(answer[1]))
    return Held(0, str(answer))


def _load_locked(node: redis.Redis, lock: str | None, is_wanted: Choice) -> bool:
    """Load the library under the lock, unless another process has loaded a suitable one meanwhile."""
    token = secrets.token_hex(8)
    deadline = time.monotonic() + LOCK_MS / 1000
    while lock is not None and not _acquire(node, lock, token) and time.monotonic() < deadline:
        waiting.pause(LOCK_WAIT)
    try:
        if not is_wanted(read_held(node)):
            return False
        node.function_load(library.text(), replace=True)
        return True
    finally:
        if lock is not None:
            _release(node, lock, token)


def _acquire(node: redis.Redis, lock: str, token: str) -> bool:
    try:
        return bool(node.set(lock, token, nx=True, px=LOCK_MS))
    except (exceptions.NoPermissionError, exceptions.MovedError, exceptions.AskError):
        return True  # an account with keys of its own, or a slot that has just moved: load without a lock


def _release(node: redis.Redis, lock: str, token: str) -> None:
    try:
        if node.get(lock) in (token, token.encode()):
            node.delete(lock)
    except (exceptions.RedisError, OSError) as error:
        log.debug("the lock %s is left to expire: %s", lock, error)


def _report(held: Held) -> None:
    """Say once in the log that this process works with the library of a newer release."""
    if held.number > library.RELEASE and held.number not in _reported:
        _reported.add(held.number)
        log.warning(
            "the server holds the functions library of release %d; this process, of release %d, works with it",
            held.number,
            library.RELEASE,
        )
