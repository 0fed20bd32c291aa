"""Follows instances that have moved to another partition, while the number of partitions of their machine grows."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from . import waiting

MOVED, MOVING = "MOVED", "MOVING"
RETRY_TIME = 5.0  # seconds for which a call waits for an instance between two partitions, usually a few ms
FIRST_PAUSE, LONGEST_PAUSE = 0.002, 0.05  # seconds
HELP_AFTER = 0.1  # seconds after which a caller brings the instance into force itself: the command may have been killed
MAX_HOPS = 8  # from a partition of an earlier number over the one before to the new one, and a few to spare


class Relocated(list[Any]):
    """A reply that another partition gave than the one that was asked: ``root``."""

    root = ""


def is_elsewhere(reply: Any) -> bool:
    """Tell whether a reply says that the instance is in another partition, or between two."""
    return type(reply) is list and bool(reply) and reply[0] in (MOVED, MOVING)


def follow(
    send: Callable[[str], list[Any]], arrive: Callable[[str], None], root: str, reply: Sequence[Any]
) -> list[Any]:
    """Ask where the instance is and return the reply from there, or the last one that sends elsewhere.

    ``send`` makes the same call at another root. ``arrive`` brings the instance into force there: an old partition that
    sends on has seen it depart, so that is safe.
    """
    began, pause, hops, helped = time.monotonic(), FIRST_PAUSE, 0, False
    while is_elsewhere(reply):
        if reply[0] == MOVED:
            root, hops = str(reply[1]), hops + 1
            if hops > MAX_HOPS:
                break
        elif time.monotonic() > began + RETRY_TIME:
            break
        elif hops and not helped and time.monotonic() > began + HELP_AFTER:
            helped = True
            arrive(root)
        else:
            waiting.pause(pause)
            pause = min(2 * pause, LONGEST_PAUSE)
        reply = send(root)
    found = Relocated(reply)
    found.root = root
    return found


def get_root(reply: Any, root: str) -> str:
    """Return the root that answered."""
    return reply.root if isinstance(reply, Relocated) else root
