"""Turns on keyspace notifications of the one narrow class that the hub listens to.

``K`` publishes on ``__keyspace@<db>__:<key>``, ``$`` is string commands: a pulse's SET, and no other of a step's
writes. Whatever else the server's owner has switched on stays on.
"""

from __future__ import annotations

SETTING = "notify-keyspace-events"
NEEDED = "K$"
#: what the letter A stands for, in every version this runs on
ALL = "g$lshzxetd"


def sufficient(flags: str) -> bool:
    """Return whether pulses are heard with these flags."""
    return "K" in flags and ("$" in flags or "A" in flags)


def add_missing(flags: str) -> str:
    """Return the same flags, with those that are needed."""
    return flags if sufficient(flags) else flags + "".join(flag for flag in NEEDED if flag not in flags)


def channel(db: int, key: str) -> str:
    """Return the exact channel of one key; never a pattern, which Redis would match with every other channel's
    message."""
    return f"__keyspace@{db}__:{key}"
