"""The number of the data layout in Redis, and the migrations that move it.

A release knows the layouts up to ``LAYOUT``. Each migration moves the data to the next number, in batches, so that the
release before can go on meanwhile and afterwards; where an older release could not, the migration says which number a
release must know, and the data say so from the moment on at which a library that writes them is loaded. A process
checks this at its start and before it loads its library, and refuses data that it would misread.
"""

import logging
import re
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .errors import EngineFault
from .keys import Keys

LOCK_MS = 60_000  # a batch of a migration is far shorter; each renews the lock

log = logging.getLogger(__name__)

Send = Callable[..., Any]
"""Sends one Redis command, given as words, and returns its answer."""


@dataclass(frozen=True, slots=True)
class Migration:
    """One move of the data layout.

    ``number``: the layout afterwards. ``reader``: the lowest layout that a release must know to work with it; 0 for
    releases of before there was a number. ``run(send, keys, place)`` does the work in batches and yields a text after
    each: the place from which another process goes on, "" at the beginning. A batch may be repeated.
    """

    number: int
    reader: int
    run: Callable[[Send, Keys, str], Iterator[str]]


def _only_number(send: Send, keys: Keys, place: str) -> Iterator[str]:
    """Change no data: the layout of before there were numbers is layout 1."""
    return iter(())


MIGRATIONS: tuple[Migration, ...] = (
    Migration(1, 0, _only_number),
    # Entries of histories are packed: an older library answers them as they are, and its programs cannot read them.
    Migration(2, 2, _only_number),
)
LAYOUT = MIGRATIONS[-1].number
"""The layout that this release writes; it reads all before."""
READER = max(migration.reader for migration in MIGRATIONS)
"""The lowest layout that a release must know to work with what the library of this release writes."""


def check(send: Send, keys: Keys, known: int = LAYOUT) -> dict[str, str]:
    """Return the hash, and raise EngineFault for a layout that a release of layout ``known`` cannot read (SB512), or
    whose numbers are none (SB514). Nothing has changed then."""
    held = _read(send, keys)
    reader = int(held.get("reader", 0))
    if reader > known:
        raise EngineFault(
            f"no downgrade: the data on the server have layout {max(reader, int(held.get('number', 0)))}, which needs "
            f"a release that knows layout {reader}; this release knows {known}. Start the newer release again; nothing "
            "was changed",
            code="SB512",
        )
    return held


def claim(send: Send, keys: Keys) -> None:
    """Check the layout, and note in it that a release must know what the library of this release writes. Done before
    that is loaded, so that no older release starts on data that it cannot read."""
    if int(check(send, keys).get("reader", 0)) < READER:
        send("HSET", keys.layout, "reader", READER)


def migrate(send: Send, keys: Keys, migrations: Sequence[Migration] = MIGRATIONS) -> int:
    """Run the migrations that are not done, unless another process runs them; return the number of the layout.

    Raises EngineFault for a layout that this release cannot read, and what ``send`` raises. Safe to repeat.
    """
    token, held = secrets.token_hex(8), check(send, keys, migrations[-1].number)
    if not _list_pending(held, migrations):
        return int(held["number"])
    if not send("SET", keys.layout_lock, token, "NX", "PX", LOCK_MS):
        return int(held.get("number", 0))
    try:
        held = _read(send, keys)
        for migration in _list_pending(held, migrations):
            if not _run(send, keys, migration, held.get("place", ""), token):
                break  # another process holds the lock now, and goes on from the last batch
            held = {}
    finally:
        if send("GET", keys.layout_lock) == token:
            send("DEL", keys.layout_lock)
    return int(_read(send, keys).get("number", 0))


def _run(send: Send, keys: Keys, migration: Migration, place: str, token: str) -> bool:
    """Run one migration from a place on; return whether it reached its end."""
    # From the first batch on: a release that cannot read what it will write must not start meanwhile.
    reader = max(migration.reader, int(send("HGET", keys.layout, "reader") or 0))
    send("HSET", keys.layout, "reader", reader)
    for after in migration.run(send, keys, place):
        send("HSET", keys.layout, "place", after)
        if send("GET", keys.layout_lock) != token:
            return False
        send("SET", keys.layout_lock, token, "XX", "PX", LOCK_MS)
    send("HSET", keys.layout, "number", migration.number)
    send("HDEL", keys.layout, "place")
    log.info("the data layout is %d now", migration.number)
    return True


def _read(send: Send, keys: Keys) -> dict[str, str]:
    try:
        held: dict[str, str] = send("HGETALL", keys.layout)
    except EngineFault as error:
        if "WRONGTYPE" not in str(error):
            raise
        raise _build_unreadable(keys, f"the key {keys.layout} is no hash") from error
    for name in ("number", "reader"):
        if not re.fullmatch(r"[0-9]{1,9}", held.get(name, "0")):
            raise _build_unreadable(
                keys, f"the field {name} of {keys.layout} is {held[name]!r:.40} and no whole number"
            )
    return held


def _build_unreadable(keys: Keys, why: str) -> EngineFault:
    return EngineFault(
        f"the number of the data layout cannot be read: {why}. Put it back: HSET {keys.layout} number N reader N, N "
        f"being the layout of the newest release that has worked on these data ({LAYOUT} for this one); nothing was "
        "changed",
        code="SB514",
    )


def _list_pending(held: Mapping[str, str], migrations: Sequence[Migration]) -> list[Migration]:
    return [migration for migration in migrations if migration.number > int(held.get("number", 0))]
