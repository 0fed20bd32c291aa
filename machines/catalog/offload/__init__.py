"""Helper processes for work that computes for long: reading submitted definitions, and drawing.

A web process has one interpreter, which all of its threads and its event loop share. A definition is read in Python,
for about a second per half megabyte, by code that meets texts nobody has seen before; so it is read elsewhere, with a
limit on processor time and on memory, and a helper that passes one is ended and another started.

    done = offload.run("read", text, who="7", cpu=3.0, format="yaml")
    done.answer, done.cpu

``who`` has one thing at a time under way, and there are ``HELPERS`` helpers for all. Needs neither Django nor Redis.
"""

from .errors import AtOnce, NoHelper, OffloadError, Overrun
from .pool import Pool, pool, run
from .tasks import Done, read_drawing, read_submission

__all__ = [
    "AtOnce",
    "Done",
    "NoHelper",
    "OffloadError",
    "Overrun",
    "Pool",
    "pool",
    "read_drawing",
    "read_submission",
    "run",
]
