"""The number of the data layout in Redis.

A release writes the layout ``LAYOUT`` and reads all before. Where an older release could not read what it writes,
``READER`` is the number that a release must know, and the data say so from the moment on at which a library that writes
them is loaded. A process checks this at its start and before it loads its library, and refuses data that it would
misread.
"""

import re
from collections.abc import Callable
from typing import Any

from .errors import EngineFault
from .keys import Keys

Send = Callable[..., Any]
"""Sends one Redis command, given as words, and returns its answer."""

LAYOUT = 2
"""The layout that this release writes: entries of histories are packed. Layout 1 had no number."""
READER = 2
"""The lowest layout that a release must know to work with what the library of this release writes: an older one answers
packed entries as they are, and its programs cannot read them."""


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
    """Check the layout, and note in it what the library of this release writes. Done before that is loaded, so that no
    older release starts on data that it cannot read."""
    if int(check(send, keys).get("number", 0)) < LAYOUT:
        send("HSET", keys.layout, "number", LAYOUT, "reader", READER)


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
