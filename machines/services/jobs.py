"""Actions on one job. All but reading need ``operate`` on its machine, and a reason."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from machines.access.redaction import Redactor
from machines.connections import get_engine
from machines.engine import Engine, Job

from . import rules
from .actor import Actor
from .errors import NotMoved
from .reading import redactor_of

REPAIR = {"redrive": "retry", "move": "retry", "withdraw": "cancel"}
"""action -> the repair that does the same, named from the instance."""
UNLISTED: dict[str, Any] = {"input": None, "data": {}, "unique": "", "trace": "", "log": ()}
UNMOVED = {
    "redrive": "It is not dead any more, or another job with its unique key is open.",
    "move": "It is not delayed any more.",
}


def get(actor: Actor, machine: str, job: str, *, redactor: Redactor | None = None) -> Job:
    """Raises Forbidden, LookupFailed."""
    actor.demand("view", machine)
    return (redactor or redactor_of(actor, machine)).job(get_engine().job(machine, job))


def listed(
    actor: Actor,
    machine: str,
    queue: str,
    *,
    place: str = "ready",
    limit: int = 50,
    offset: int = 0,
    redactor: Redactor | None = None,
    brief: bool = False,
) -> list[Job]:
    """``brief``: without data, input and what else only the page of a job shows. Raises Forbidden."""
    actor.demand("view", machine)
    redactor = redactor or redactor_of(actor, machine)
    found = get_engine().jobs(machine, queue, place=place, limit=limit, offset=offset)
    return [redactor.job(replace(job, **UNLISTED) if brief else job) for job in found]


def redrive(actor: Actor, machine: str, job: Job | str, *, reason: str, force: bool = False) -> None:
    """A dead job is ready again with all its attempts; a handled one with ``force`` alone. Raises NotMoved, JobHandled,
    LookupFailed."""
    _act(actor, "redrive", machine, job, reason, **({"force": True} if force else {}))


def move(actor: Actor, machine: str, job: Job | str, *, reason: str) -> None:
    """A delayed job is ready at once. Raises NotMoved, LookupFailed."""
    _act(actor, "move", machine, job, reason)


def withdraw(actor: Actor, machine: str, job: Job | str, *, reason: str) -> None:
    """Takes a job away for good, wherever it is. Raises LookupFailed."""
    _act(actor, "withdraw", machine, job, reason)


def _act(actor: Actor, name: str, machine: str, job: Job | str, reason: str, **further: bool) -> None:
    id = job if isinstance(job, str) else job.id
    with actor.records(f"job.{name}", machine=machine, target=id, reason=reason) as deed:
        actor.demand("operate", machine)
        with rules.alone(actor, machine, REPAIR[name]) as permit:
            engine = get_engine()
            found = engine.job(machine, id) if isinstance(job, str) else job
            deed.name(instance=found.instance, queue=found.queue)
            deed.note(place=found.place, src=found.src, **further)
            if not _moved(engine, name, found, actor=actor.name, reason=reason, permit=permit, **further):
                raise NotMoved(id, UNMOVED[name])


def _moved(engine: Engine, name: str, job: Job, **who: Any) -> bool:
    if name == "withdraw":
        engine.withdraw(job.machine, job, **who)
        return True
    move = engine.redrive if name == "redrive" else engine.move_now
    return move(job.machine, job.queue, job, **who) > 0
