"""Actions on one job. All but reading need ``operate`` on its machine, and a reason."""

from typing import Any

from machines.catalog import rules
from machines.connections import get_engine
from machines.engine import Engine, Job
from machines.people.actor import Actor

from .errors import NotMoved

REPAIR = {"redrive": "retry", "move": "retry", "delay": "retry", "reroute": "retry", "withdraw": "cancel"}
"""action -> the repair that does the same, named from the instance."""
UNMOVED = {
    "redrive": "It is not dead any more, or another job with its unique key is open.",
    "move": "It is not delayed any more.",
}


def redrive(actor: Actor, machine: str, job: Job | str, *, reason: str, force: bool = False) -> None:
    """Make a dead job ready again with all its attempts; a handled one with ``force`` alone. Raises NotMoved,
    JobHandled, LookupFailed."""
    _act(actor, "redrive", machine, job, reason, **({"force": True} if force else {}))


def move(actor: Actor, machine: str, job: Job | str, *, reason: str) -> None:
    """Make a delayed job ready at once. Raises NotMoved, LookupFailed."""
    _act(actor, "move", machine, job, reason)


def withdraw(actor: Actor, machine: str, job: Job | str, *, reason: str) -> None:
    """Take a job away for good, wherever it is. Raises LookupFailed."""
    _act(actor, "withdraw", machine, job, reason)


def _act(actor: Actor, name: str, machine: str, job: Job | str, reason: str, **further: bool) -> None:
    id = job if isinstance(job, str) else job.id
    with actor.records(f"job.{name}", machine=machine, target=id, reason=reason) as entry:
        actor.demand("operate", machine)
        with rules.alone(actor, machine, REPAIR[name]) as permit:
            engine = get_engine()
            found = engine.job(machine, id) if isinstance(job, str) else job
            entry.name(instance=found.instance, queue=found.queue)
            entry.note(place=found.place, src=found.src, **further)
            if not _move(engine, name, found, actor=actor.name, reason=reason, permit=permit, **further):
                raise NotMoved(id, UNMOVED[name])


def _move(engine: Engine, name: str, job: Job, **who: Any) -> bool:
    if name == "withdraw":
        engine.withdraw(job.machine, job, **who)
        return True
    move = engine.redrive if name == "redrive" else engine.move_now
    return move(job.machine, job.queue, job, **who) > 0
