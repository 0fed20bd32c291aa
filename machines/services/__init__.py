"""Actions of people and programs. Pages, admin, API and command line all call these functions.

::

    actor = Actor.of(request)
    after = instances.fire(actor, "order", "o-1", "ship", {"by": "air"}, expect=3, key="...", reason="...")

Each function that changes something checks the right, calls the engine with what the person may, which holds the step
to the group rule and the approval rule, and leaves an entry in the audit with any outcome. Each that reads answers
masked what its actor may not see in clear.

- ``actor``: who acts, by which door, and within which limits; ``errors``: what is said no to here
- ``instances``, ``queues``, ``jobs``, ``workers``, ``definitions``, ``bulks``: one function for each action
- ``keys``: state machines that the SM commands keep, outside of the engine
- ``notes``: what one shift wants the next one to know
- ``tokens``: those of the API and their sessions, created and revoked
- ``alarms``: what needs attention now, and who takes care of it
- ``runs``: those of map-reduce, retried and removed
- ``schedules``: what is done at certain times, with its next and past runs
- ``approvals``: what waits for a second person, and deciding it
- ``rules``: what a definition lets this person do, and do alone
"""

from . import (
    alarms,
    approvals,
    bulks,
    definitions,
    instances,
    jobs,
    notes,
    queues,
    runs,
    schedules,
    sm_keys,
    tokens,
    workers,
)
from .actor import Actor
from .errors import ApprovalNeeded, Forbidden, NotAccepted, NotMoved, NotOpen, OwnRequest, TokenNeeded

__all__ = [
    "Actor",
    "ApprovalNeeded",
    "Forbidden",
    "NotAccepted",
    "NotMoved",
    "NotOpen",
    "OwnRequest",
    "TokenNeeded",
    "alarms",
    "approvals",
    "bulks",
    "definitions",
    "instances",
    "jobs",
    "notes",
    "queues",
    "runs",
    "schedules",
    "sm_keys",
    "tokens",
    "workers",
]
