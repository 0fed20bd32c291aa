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
    """Whether pulses are heard with these flags."""
    return "K" in flags and ("$" in flags or "A" in flags)


def merged(flags: str) -> str:
    """The same flags and what is needed."""
    return flags if sufficient(flags) else flags + "".join(flag for flag in NEEDED if flag not in flags)


def channel(db: int, key: str) -> str:
    """The exact channel of one key; never a pattern, which every other channel's message would be matched with."""
    return f"__keyspace@{db}__:{key}"
