"""Puts the functions library onto the server, and never an older one over a newer one.

Several releases may run on one server at once, as they do while a new one is rolled out. The library says its release
number: a process loads its own only where there is none or one with a lower number, and works with a newer one as it
is, because a newer library answers the calls of the release before. One that does not answer this release's calls any
more is refused. Of one number (two states of a release in development) a process loads its own at its start, and once
more if a function is missing: they never load in turn.

An account that may not load works with the library that is there. Where that is missing or older, the error says which
command to run; the first call after that goes on.

A lock key on each server makes sure that between reading the number and loading nobody else loads.
"""

import logging
import re
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import redis
from redis import exceptions

from machines.engine.errors import EngineFault, LibraryNotLoaded, NotPermitted
from machines.engine.keys import Keys

from . import library, routing, waiting
from .client import Client

COMMAND = "signalbox library load"
MISSING = "Function not found"
TAKEN = "already exists"  # of a function that a library of another name has
LOCK_MS = 10_000  # a load takes some 60 ms
LOCK_WAIT = 0.02  # seconds between two looks at a lock that another process holds
MOST_TAGS = 4096  # hash tags tried to find a lock key that a node of a cluster owns
GONE = (exceptions.ConnectionError, exceptions.TimeoutError, OSError)

log = logging.getLogger(__name__)
_reported: set[int] = set()  # release numbers of newer libraries that the log has named


@dataclass(frozen=True, slots=True)
class HeldLibrary:
    """The library that a server holds. ``number``: its release number, 0 for one of before there were numbers;
    ``serves``: the lowest number of programs whose calls it answers."""

    number: int
    fingerprint: str
    serves: int = 0

    @property
    def is_ours(self) -> bool:
        return self.number == library.RELEASE and self.fingerprint == library.fingerprint()


@dataclass(frozen=True, slots=True)
class Visit:
    """What became of one server. ``address``: "" for the only one; ``error``: why it did not answer."""

    address: str
    held: HeldLibrary | None = None
    loaded: bool = False
    error: Exception | None = None


Choice = Callable[[HeldLibrary | None], bool]
"""Tells whether a library that a server holds, or None, has to be replaced by this process's own."""


class LibraryLoader:
    """Loads the library on the server, or on each primary of a cluster. Safe to share between threads. ``claim`` is
    called before each load, and raises where the data on the server do not allow it.

    Each method raises EngineFault for a library that this release cannot work with, and where this account may not load
    one that is wanted; beside that, what redis-py raises.
    """

    def __init__(self, client: Client, keys: Keys, claim: Callable[[], None]) -> None:
        self._client = client
        self._keys = keys
        self._claim = claim
        self._lock = waiting.Lock()
        self._replaced_same = False

    def ensure(self) -> list[Visit]:
        """Load the library where there is none, an older one, or another one of the same number.

        On a cluster a primary that is away is left out: the first call that meets it without a library loads it.
        """
        with self._lock:
            return self._load_on_each(
                lambda held: held is None or (held.number <= library.RELEASE and not held.is_ours)
            )

    def replace(self) -> list[Visit]:
        """Load the library, unless a newer one is there; return what became of each server."""
        with self._lock:
            return self._load_on_each(lambda held: held is None or held.number <= library.RELEASE, may_stay=False)

    def require(self) -> None:
        """Load the library where there is none or an older one."""
        with self._lock:
            self._load_on_each(lambda held: held is None or held.number < library.RELEASE)

    def load_missing(self) -> None:
        """Load the library because a function is missing on a server. Raises EngineFault where another one stays."""
        with self._lock:
            stays: list[HeldLibrary] = []

            def is_wanted(held: HeldLibrary | None) -> bool:
                if held is None or held.number < library.RELEASE:
                    return True
                if held.number == library.RELEASE and not held.is_ours and not self._replaced_same:
                    return True
                if not held.is_ours:
                    stays.append(held)
                return False

            replaced = [visit.held for visit in self._load_on_each(is_wanted) if visit.loaded]
            self._replaced_same = self._replaced_same or any(
                held and held.number == library.RELEASE for held in replaced
            )
            if stays and not replaced:
                raise EngineFault(
                    f"the library on the server (release {stays[0].number}, {stays[0].fingerprint}) lacks a function "
                    f"that this program calls (release {library.RELEASE}, {library.fingerprint()}): start a program of "
                    "its release"
                )

    def read(self) -> list[HeldLibrary | None]:
        """Return what the server holds, or each primary of a cluster."""
        return [read_held(node) for node in routing.list_nodes(self._client)]

    def _load_on_each(self, is_wanted: Choice, *, may_stay: bool = True) -> list[Visit]:
        """Load on each server whose library ``is_wanted`` says to replace. ``may_stay``: another one of this release
        does for an account that may not load."""
        visits: list[Visit] = []
        denied: LibraryNotLoaded | None = None
        nodes = routing.list_nodes(self._client)
        for node in nodes:
            address = routing.get_address(node) if len(nodes) > 1 else ""
            try:
                held = read_held(node)
                stays = may_stay and held is not None and held.number == library.RELEASE
                loaded = is_wanted(held) and self._load_permitted(node, held, address, is_wanted, stays)
                if held is not None and not loaded:
                    _check_served(held)
                visits.append(Visit(address, held, loaded))
            except GONE as error:
                visits.append(Visit(address, error=error))
            except LibraryNotLoaded as error:
                denied = denied or error
        gone = [visit.error for visit in visits if visit.error is not None]
        if gone and len(gone) == len(nodes):
            raise gone[0]
        if denied is not None:
            raise denied
        return visits

    def _load_permitted(
        self, node: redis.Redis, held: HeldLibrary | None, address: str, is_wanted: Choice, stays: bool
    ) -> bool:
        """Load the library. Where this account may not, go on with the one that ``stays``."""
        try:
            return self._load_locked(node, is_wanted)
        except (exceptions.NoPermissionError, NotPermitted) as error:
            if stays:
                return False
            raise _build_denied(held, address) from error

    def _load_locked(self, node: redis.Redis, is_wanted: Choice) -> bool:
        """Load the library under the lock, unless another process has loaded a suitable one meanwhile."""
        _list_others(node)  # an account that may not fails before it takes the lock
        token, lock = secrets.token_hex(8), self._find_lock(node)
        deadline = time.monotonic() + LOCK_MS / 1000
        while lock is not None and not _acquire(node, lock, token) and time.monotonic() < deadline:
            waiting.pause(LOCK_WAIT)
        try:
            if not is_wanted(read_held(node)):
                return False
            self._claim()
            put(node)
            return True
        finally:
            if lock is not None:
                _release(node, lock, token)

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


def read_held(node: redis.Redis) -> HeldLibrary | None:
    """Ask one server for its library; None where it has none."""
    try:
        answer = node.execute_command("FCALL_RO", "sb_library", 0, "release")  # type: ignore[no-untyped-call]
    except exceptions.ResponseError as error:
        if MISSING in str(error):
            return None
        raise
    return read_answer(answer)


def read_answer(answer: Any) -> HeldLibrary:
    """Read what ``sb_library`` answers: libraries without a number answer their fingerprint alone."""
    if isinstance(answer, list):
        return HeldLibrary(int(answer[0]), str(answer[1]), int(answer[2]) if len(answer) > 2 else 0)
    return HeldLibrary(0, str(answer))


def put(node: redis.Redis) -> None:
    """Load the library on one server, in place of whatever release's library is there, in one step."""
    with node.pipeline(transaction=True) as pipe:
        for name in _list_others(node):
            pipe.function_delete(name)
        pipe.function_load(library.text(), replace=True)
        *_, loaded = pipe.execute(raise_on_error=False)  # another process may have deleted one in between
    if isinstance(loaded, Exception):
        raise loaded


def _list_others(node: redis.Redis) -> list[str]:
    """List the libraries of releases with another layout."""
    names = []
    for row in node.function_list(f"{library.FAMILY}*"):
        fields = row if isinstance(row, dict) else dict(zip(row[::2], row[1::2], strict=True))
        name = fields.get("library_name") or fields[b"library_name"]
        names.append(name.decode() if isinstance(name, bytes) else str(name))
    return [name for name in names if re.fullmatch(rf"{library.FAMILY}(_\d+)?", name) and name != library.NAME]


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


def _check_served(held: HeldLibrary) -> None:
    """Raise EngineFault for a library of the future that answers other calls than this release makes; say once in the
    log that this process works with one of a newer release."""
    if held.serves > library.RELEASE:
        raise EngineFault(
            f"no downgrade: the server holds the functions library of release {held.number}, which serves programs of "
            f"release {held.serves} and later; this one is of release {library.RELEASE}. Start a newer release; "
            "nothing was changed",
            code="SB516",
        )
    if held.number > library.RELEASE and held.number not in _reported:
        _reported.add(held.number)
        log.warning(
            "the server holds the functions library of release %d; this process, of release %d, works with it",
            held.number,
            library.RELEASE,
        )


def _build_denied(held: HeldLibrary | None, address: str) -> LibraryNotLoaded:
    where = f"the server {address}" if address else "the server"
    if held is None:
        return LibraryNotLoaded(f"{where} has no functions library")
    return LibraryNotLoaded(
        f"the functions library on {where} is of release {held.number}, and this program of release {library.RELEASE}"
    )
