"""Workers: their state, and orders to them."""

from typing import Any, Literal

from django.http import HttpRequest

from dashboard.api.framework.operation import Group, actor_of
from dashboard.api.framework.schemas import Body, Items, Out, Reason
from machines.engine import WorkerInfo
from machines.jobs import worker_actions as workers

group = Group("workers", "Processes that run jobs.")


class WorkerOut(Out.derive(
    WorkerInfo,
    "id host pid queues in_hand concurrency version note holding done failed status memory lacking hanging",
    times="started seen",
)):  # fmt: skip
    """status: working, blocked, quiet, exhausted or stopping
    seen: its last heartbeat, ms
    memory: bytes; 0 where that is not known
    lacking: machine/queue -> handlers it lacks there
    hanging: machine/queue -> handlers that go on past their deadline, or block the event loop
    """


class Ordering(Body):
    order: Literal["quiet", "work", "stop"]
    reason: Reason


class Ordered(Out):
    worker: str
    order: str


@group.get("/workers", right="view", answers=Items[WorkerOut])
def list_workers(request: HttpRequest) -> dict[str, Any]:
    """List workers.

    List workers. Queues and jobs of machines the caller may not see are left out of their rows.
    """
    return {"items": list(workers.list_workers(actor_of(request)))}


@group.post(
    "/workers/{instance:worker}/orders", right="operate", everywhere=True, answers=Ordered,
    example={"order": "quiet", "reason": "the host is to be restarted"},
)  # fmt: skip
def direct_worker(request: HttpRequest, worker: str, body: Ordering) -> dict[str, str]:
    """Quiet, resume or stop a worker.

    Direct the worker, which obeys with its next heartbeat: quiet (take no further jobs), work, or stop.
    """
    workers.direct(actor_of(request), worker, body.order, reason=body.reason)
    return {"worker": worker, "order": body.order}
