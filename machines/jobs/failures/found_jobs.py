"""Actions on all jobs that a search finds: a worker carries them out at a rate, as it does retries of dead jobs."""

import time
from collections.abc import Container
from dataclasses import dataclass
from typing import Any

from machines.catalog import rules
from machines.engine import BadInput, Job, LookupFailed, Miscounted
from machines.engine.limits import MAX_DELAY
from machines.jobs import queue_actions
from machines.jobs.actions import REPAIR
from machines.jobs.search import JobTerms, find_jobs
from machines.people import limits
from machines.people.actor import Actor

from .actions import MAX_RATE, RATE, check_reason
from .models import FailureAction

MAX_CHOSEN = 10_000  # jobs of one action
SECONDS = 4.0  # of its search, and of the search of its preview
ACTIONS = {
    "ready": ("delay", "reroute", "withdraw"),
    "delayed": ("move", "delay", "reroute", "withdraw"),
    "dead": ("redrive", "withdraw"),
    "handled": ("withdraw",),
}
"""Place -> what can be done to its jobs."""


def make_stamp(job: Job) -> str:
    """Name a job and when it came to its place: one that left it meanwhile is another."""
    return f"{job.id} {job.finished or job.due}"


@dataclass(frozen=True, slots=True, kw_only=True)
class JobsOrder:
    """An action on jobs of a place, after ``offset`` others, ``rate`` a second at most. ``expect``: how many the actor
    saw; ``delay``: ms that "delay" has each wait from then on, if it is not due later; ``to``: the queue to which
    "reroute" moves them."""

    place: str
    action: str
    reason: str
    rate: int = RATE
    expect: int | None = None
    offset: int = 0
    delay: int = 0
    to: str = ""


def start(actor: Actor, machine: str, queue: str, terms: JobTerms, order: JobsOrder) -> FailureAction:
    """Do what is ordered to the jobs that the search finds now. Raises Forbidden, LookupFailed, BadInput,
    Miscounted."""
    place, action, rate = order.place, order.action, order.rate
    about = {"machine": machine, "queue": queue, "reason": order.reason}
    with actor.records(f"job.{action}", **about) as entry:
        entry.note(place=place, rate=rate)
        actor.demand("operate", machine)
        check_reason(order.reason)
        queues = queue_actions.stats(actor, machine)
        if queue not in queues:
            raise LookupFailed(f"machine {machine!r} has no queue {queue!r}")
        if action not in ACTIONS.get(place, ()):
            raise BadInput(f"a job that is {place} cannot be changed so")
        where = _choose_target(order, queue, queues)
        entry.note(**where)
        if isinstance(rate, bool) or not 1 <= rate <= MAX_RATE:
            raise BadInput(f"a rate is 1 to {MAX_RATE} jobs a second")
        limits.spend_rate(actor, f"job.{action}", **about)
        bounds = {"limit": MAX_CHOSEN, "offset": order.offset, "seconds": SECONDS}
        found = find_jobs(actor, machine, queue, terms, place=place, **bounds).jobs
        if order.expect not in (None, len(found)):
            raise Miscounted(queue, place, expected=order.expect, actual=len(found))
        if not found:
            raise BadInput("the search finds no such jobs")
        with rules.alone(actor, machine, REPAIR[action]):
            now = int(time.time() * 1000)
            made = FailureAction(
                action=action, actor=actor.name, person=actor.is_person, reason=order.reason, rate=rate, started=now,
                terms={"machine": machine, "queue": queue, "place": place, **where}, machines=[machine],
                jobs=[make_stamp(job) for job in found], updated=now - 1000,
            )  # fmt: skip
            made.save()
        entry.note(count=len(found))
        return made


def _choose_target(order: JobsOrder, queue: str, queues: Container[str]) -> dict[str, Any]:
    """Return how long, or to which queue, an action moves jobs, as its terms name it."""
    if order.action == "delay":
        if not 0 < order.delay <= MAX_DELAY:
            raise BadInput("a delay is longer than nothing, and ten years at most")
        return {"delay": order.delay}
    if order.action == "reroute":
        if order.to == queue or order.to not in queues:
            raise BadInput("jobs move to another queue that the machine has")
        return {"to": order.to}
    return {}
