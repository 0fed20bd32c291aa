"""Schedules: what is done at certain times, by cron, by an interval or once.

::

    from machines.schedules import Schedules

    Schedules(engine).put({
        "name": "nightly-report", "when": {"cron": "30 2 * * *"}, "zone": "Europe/Zurich",
        "what": {"do": "enqueue", "machine": "report", "src": "make_report"},
    })

- ``document``, ``occurrences``: what a schedule says, and its occurrences, as pure functions
- ``definitions``: the machine whose instances are schedules; its timers are the engine's
- ``store``: where a schedule is kept, so that nobody changes it without the right to do what it does
- ``planning``, ``execution``, ``effects``, ``handlers``: what is due at a moment, and carrying it out once
- ``declarations``: schedules of apps and definitions
- ``authors``: the rights a schedule takes, and whether its author still holds them
- ``targets``: what a schedule names is there
- ``schedules``: what callers hold
"""

from . import authors
from .declarations import declare
from .document import PEOPLE, SCHEDULES, Schedule, read
from .errors import AuthorLost, BackfillRefused, DeclaredSchedule, Finding, InvalidSchedule, UnknownSchedule
from .occurrences import describe as describe_time
from .schedules import Row, Schedules, describe_run

__all__ = [
    "PEOPLE",
    "SCHEDULES",
    "AuthorLost",
    "BackfillRefused",
    "DeclaredSchedule",
    "Finding",
    "InvalidSchedule",
    "Row",
    "Schedule",
    "Schedules",
    "UnknownSchedule",
    "authors",
    "declare",
    "describe_run",
    "describe_time",
    "read",
]
