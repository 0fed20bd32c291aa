"""Orders to workers. A worker may serve many machines, so an order needs ``operate`` on all of them."""

from machines.connections import get_engine
from machines.engine import BadInput, WorkerInfo
from machines.engine.records import PartialList
from machines.people.actor import Actor
from machines.people.errors import Forbidden

ORDERS = ("quiet", "work", "stop")


def list_workers(actor: Actor) -> PartialList[WorkerInfo]:
    """List the workers that are alive, without jobs and queues of machines that the actor does not see. Raises
    Forbidden for an actor who sees no machine."""
    scope = actor.scope("view")
    if not scope:
        raise Forbidden("view")
    alive = get_engine().workers()
    return PartialList([row.only(scope) for row in alive], missing=alive.missing)


def read_clock() -> int:
    """Return the time of Redis, in ms, by which workers report. Raises EngineUnavailable."""
    return get_engine().read_clock()


def direct(actor: Actor, worker: str, order: str, *, reason: str) -> None:
    """Give a worker an order that it obeys with its next heartbeat. Raises Forbidden, LookupFailed, BadInput."""
    if order not in ORDERS:
        raise BadInput(f"a worker is told to {', '.join(ORDERS)}, not {order!r}")
    with actor.records(f"worker.{order}", target=worker, reason=reason):
        actor.demand("operate")
        get_engine().direct(worker, order, actor=actor.name, reason=reason)
