"""A machine with many instances, bulks on it, and workers in this thread or this process."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from typing import Any

from machines.engine import Engine, Fire
from machines.engine.errors import LeaseLost
from machines.instances.bulks import BULK, Bulk, Order
from machines.worker.job import Job
from machines.worker.registry import discover

PARCEL = {
    "id": "parcel",
    "initial": "open",
    "context": {"type": "object", "properties": {"weight": {"type": "integer", "default": 1}, "sent": {"default": 0}}},
    "events": {"send": {"payload": {"by": "string"}}, "label": {"payload": {}}},
    "states": {
        "open": {
            "on": {
                "send": {"target": "sent", "guard": "weight < 10", "actions": {"set": {"sent": "sent + 1"}}},
                "label": {"actions": {"set": {"sent": "sent + 1"}}},
            }
        },
        "sent": {"on": {"send": {"actions": {"set": {"sent": "sent + 1"}}}, "back": "open"}},
        "lost": {},
    },
}
QUEUES = ("collect", "preview", "act", "remove")


def parcels(engine: Engine, count: int, **data: Any) -> list[str]:
    """So many open parcels; their ids."""
    engine.publish(PARCEL)
    ids = [f"p{number}" for number in range(count)]
    for id in ids:
        engine.create("parcel", id, data or None)
    return ids


def order(**given: Any) -> Order:
    """Sends whatever is open, unless told otherwise."""
    terms = {"machine": "parcel", "action": "fire", "actor": "ann", "reason": "the van is late", "event": "send"}
    return Order(**terms | {"filter": {"state": "open"}} | given)


def previewed(engine: Engine, **given: Any) -> Bulk:
    """A bulk whose dry run is over."""
    bulk = Bulk.start(engine, order(**given))
    work_off(engine)
    assert bulk.get().state == "previewed", bulk.get().data
    return bulk


def finished(engine: Engine, **given: Any) -> Bulk:
    """A bulk that has run to its end."""
    bulk = previewed(engine, **given)
    bulk.run("ann")
    work_off(engine)
    return bulk


def step(engine: Engine, queue: str, worker: str = "w") -> Job | None:
    """Take the next job, run its handler and complete it, as a worker does; None where there is none."""
    taken = engine.take(BULK, queue, worker)
    if not taken:
        return None
    job = Job(taken[0])
    with suppress(LeaseLost):
        engine.complete(job.taken, discover().get(job.src).function(job))
    return job


def step_failing(engine: Engine, queue: str) -> str:
    """Take the next job and fail it for good with what its handler raises; the text of that."""
    (taken,) = engine.take(BULK, queue, "w")
    try:
        discover().get(taken.src).function(Job(taken))
    except Exception as error:
        engine.fail(taken, str(error), retry=False)
        return str(error)
    raise AssertionError(f"{taken.src} did not fail")


def work_off(engine: Engine) -> None:
    """All jobs that are ready, one after the other in this thread."""
    while any(step(engine, queue) for queue in QUEUES):
        pass


def states(engine: Engine) -> dict[str, int]:
    """Parcels by state, without the states where there are none."""
    return {state: count for state, count in engine.counts("parcel").items() if count}


def words(bulk: Bulk, what: str) -> dict[str, int]:
    """How many of each verdict or outcome there are, as its rows say."""
    notes = [getattr(row, what) for page in bulk.pages() for row in page]
    return dict(Counter(note.word if note else "none" for note in notes))


def sent(engine: Engine, ids: list[str]) -> Counter[int]:
    """How often parcels were moved -> how many of them."""
    return Counter(found.data.get("sent", 0) for found in engine.get_many("parcel", ids))


def fire_all(engine: Engine, ids: list[str], event: str) -> None:
    engine.fire_many([Fire("parcel", id, event) for id in ids])
