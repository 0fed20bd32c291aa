"""Schedules of people: listed, made, changed, paused, run, backfilled and removed.

To see one takes ``view`` on the machine that it acts on; to pause, resume or remove it ``operate`` there. To make,
change, run or backfill one takes the right to do what it does besides: ``fire`` for events and new instances. Its
events are held to the groups of the person who changed it last, as they were then. Once that person may not do any more
what it does, it pauses with an alarm until somebody who may takes it over.
"""

from .actions import backfill, pause, put, remove, resume, run, take_over
from .reading import count_backfill, get, history, list_next, listed, may, preview, read_range

__all__ = [
    "backfill",
    "count_backfill",
    "get",
    "history",
    "list_next",
    "listed",
    "may",
    "pause",
    "preview",
    "put",
    "read_range",
    "remove",
    "resume",
    "run",
    "take_over",
]
